"""parquet.py - the JSONL files of a data set once more as Parquet, in a folder parquet beside them.

usage: parquet.py DIR       SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys


def main(folder):
    try:
        import pyarrow.json
        import pyarrow.parquet
    except ImportError as missing:
        sys.exit(f"{missing}; python3 -m pip install pyarrow, or name another Python in KLINEAGE_PYTHON")
    made = folder / "parquet"
    made.mkdir()
    for rows in sorted(folder.glob("*.jsonl")):
        # A row is one line; a block has to hold the longest.
        block = max(1 << 20, 2 * max(len(line) for line in rows.open("rb")))
        table = pyarrow.json.read_json(rows, read_options=pyarrow.json.ReadOptions(block_size=block))
        pyarrow.parquet.write_table(table, made / f"{rows.stem}.parquet")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
