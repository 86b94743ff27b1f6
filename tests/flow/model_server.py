#!/usr/bin/env python3
"""model_server.py - a model's server for tests: all wire shapes, every kind of trouble, no network beyond this machine.

usage: model_server.py [--port N] [--log FILE] [--replies FILE] [--behave NAME]

Speaks POST /v1/messages (Anthropic), /v1/chat/completions (OpenAI), /api/v1/chat/completions (OpenRouter), MODEL:streamGenerateContent (Gemini)
and MODEL:streamRawPredict (Vertex AI), all streaming, and /model/MODEL/invoke (Bedrock), in one piece.  Prints "port N" and serves until it is ended, or
until its stdin closes, so that it never outlives a test.  --log gets one line of JSON per request: path, headers, body, behaviour.

What it does is the model's name in the request, or --behave for every model, or `ok`:

  ok              a short reply in several pieces, among pings and events that no reader knows
  slow            the same, byte by byte        split           one byte per write, and \\r\\n line ends
  once-429 once-529 once-503    turned away once (retry-after-ms), then ok        always-429     never anything else
  once-inside     overloaded_error as the first event of a 200, then ok           inside         after the answer has begun
  no-retry        500 with x-should-retry: false
  401 400 404     with an error's JSON; 401 repeats the key it was given, as some servers do
  cut             ends in the middle of the stream       cut-early       ends before anything was said
  cut-late        says all, and breaks off before the transfer ends
  never           sends the beginning and then nothing
  garbage         events that are no JSON                html            a page instead of a stream
  huge            more than a reply may have             endless-line    one line that does not end
  max-tokens refusal no-usage bad-usage no-end           redirect
  escape          control characters and markup in every name and text
  echo            says the key it was given, in the text and as the model's name
  byok no-bill    OpenRouter: a key of the user's own at the seller; no cost in the usage

With --replies the text of `ok` is the next of FILE: a recording (JSONL with "text") or a JSON array of texts.
From Python: `with Server(replies=[...]) as s: ... s.port, s.requests()`.  SPDX-License-Identifier: Apache-2.0
"""
import argparse
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

TEXT = "ACTION: unroll\nLOCUS: loop k\n\u00fcml\u00e4ut and \U0001f680 end.\n"
LIMIT = 1 << 20


def read_replies(path):
    text = open(path, encoding="utf-8").read()
    if text.lstrip().startswith("["):
        return json.loads(text)
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [line["text"] for line in lines if "text" in line]


class Anthropic:
    """Events of one reply in the Messages shape."""

    def __init__(self, model, usage):
        self.model, self.usage = model, usage

    def event(self, name, **data):
        return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"

    def start(self):
        message = {"id": "msg_1", "role": "assistant", "model": self.model, "content": [], "stop_reason": None}
        if self.usage is True:
            message["usage"] = {"input_tokens": 12, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 52000,
                                "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100}, "output_tokens": 1}
        elif self.usage:
            message["usage"] = self.usage
        return (self.event("message_start", message=message) + self.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
                + self.event("ping") + ": a comment\n\n" + self.event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hmm"})
                + self.event("something_new", what={"ever": [1, 2]}))

    def piece(self, text):
        return self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def stop(self, reason):
        usage = {"usage": {"output_tokens": 900}} if self.usage is True else {"usage": self.usage} if self.usage else {}
        return self.event("content_block_stop", index=0) + self.event("message_delta", delta={"stop_reason": reason}, **usage)

    def end(self):
        return self.event("message_stop")

    def error(self, kind, text):
        return self.event("error", error={"type": kind, "message": text})

    def refusal(self, status, kind, text):
        return {"type": "error", "error": {"type": kind, "message": text}}

    REASONS = dict(end="end_turn", length="max_tokens", refusal="refusal")
    kind = "text/event-stream"


class Bedrock(Anthropic):
    """The same as one object, in pieces of its text."""

    def start(self):
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model}
        return json.dumps(head)[:-1] + ', "content": [{"type": "thinking", "thinking": "hmm"}, {"type": "text", "text": "'

    def piece(self, text):
        return json.dumps(text)[1:-1]

    def stop(self, reason):
        usage = {"input_tokens": 12, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 52000,
                 "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100}, "output_tokens": 900}
        said = usage if self.usage is True else self.usage
        return '"}], "stop_reason": ' + json.dumps(reason) + (f', "usage": {json.dumps(said)}' if said else "")

    def end(self):
        return "}"

    def refusal(self, status, kind, text):
        return {"message": text}

    kind = "application/json"


class OpenAI:
    """The same in the Chat Completions shape."""

    def __init__(self, model, usage):
        self.model, self.usage = model, usage

    def chunk(self, delta=None, reason=None, **more):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        return f"data: {json.dumps({'id': 'c1', 'object': 'chat.completion.chunk', 'model': self.model, 'choices': choices, **more})}\n\n"

    def start(self):
        return ": keep-alive\n\n" + self.chunk({"role": "assistant", "content": ""}, usage=None)

    def piece(self, text):
        return self.chunk({"content": text}, usage=None)

    def stop(self, reason):
        usage = {"prompt_tokens": 52312, "completion_tokens": 900, "total_tokens": 53212,
                 "prompt_tokens_details": {"cached_tokens": 52000, "cache_write_tokens": 300},
                 "completion_tokens_details": {"reasoning_tokens": 400}, **self.bill()} if self.usage is True else self.usage
        return self.chunk({}, reason) + (self.chunk(None, usage=usage) if usage else "")

    def bill(self):
        return {"cost": 0}  # nothing that this shape knows

    def end(self):
        return "data: [DONE]\n\n"

    def error(self, kind, text):
        return f"data: {json.dumps({'error': {'type': kind, 'message': text}})}\n\n"

    refusal = Anthropic.refusal
    REASONS = dict(end="stop", length="length", refusal="content_filter")
    kind = "text/event-stream"


class OpenRouter(OpenAI):
    """The same with what it cost."""

    def bill(self):
        if self.model == "byok":
            return {"cost": 0.0005, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.0113}}
        return {} if self.model == "no-bill" else {"cost": 0.01234, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.01234}}

    def error(self, kind, text):
        return f"data: {json.dumps({'error': {'code': 502, 'message': kind + ': ' + text}})}\n\n"


class Gemini:
    """The same in the generateContent shape: no end mark, counts in every event."""

    def __init__(self, model, usage):
        self.model, self.usage = model, usage

    def event(self, parts=None, reason=None, **more):
        candidate = {"content": {"role": "model", "parts": parts or []}, "index": 0, **({"finishReason": reason} if reason else {})}
        return f"data: {json.dumps({'candidates': [candidate], 'modelVersion': self.model, **more})}\n\n"

    def counts(self, answer):
        if self.usage is True:
            return {"usageMetadata": {"promptTokenCount": 52312, "cachedContentTokenCount": 52000, "thoughtsTokenCount": 400,
                                      "candidatesTokenCount": answer, "totalTokenCount": 52712 + answer}}
        return {"usageMetadata": self.usage} if self.usage else {}

    def start(self):
        return self.event([{"text": "hmm", "thought": True}], **self.counts(1))

    def piece(self, text):
        return self.event([{"text": text}])

    def stop(self, reason):
        self.reason = reason
        return ""

    def end(self):
        return self.event([{"text": "", "thoughtSignature": "abc"}], self.reason, **self.counts(500))

    def error(self, kind, text):
        return f"data: {json.dumps({'error': {'code': 503, 'message': text, 'status': 'UNAVAILABLE'}})}\n\n"

    def refusal(self, status, kind, text):
        return [{"error": {"code": status, "message": text, "status": kind.upper()}}]

    REASONS = dict(end="STOP", length="MAX_TOKENS", refusal="SAFETY")
    kind = "text/event-stream"


DOORS = [(re.compile(r"/v1/messages"), Anthropic), (re.compile(r"(?:/local)?/v1/chat/completions"), OpenAI), (re.compile(r"/api/v1/chat/completions"), OpenRouter),
         (re.compile(r"/v1beta/models/([^/]+):streamGenerateContent\?alt=sse"), Gemini),
         (re.compile(r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/([^/]+):streamRawPredict"), Anthropic),
         (re.compile(r"/model/([^/]+)/invoke"), Bedrock)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw)
        doors = [(door.fullmatch(self.path), shape) for door, shape in DOORS if door.fullmatch(self.path)]
        match, shape = doors[0] if doors else (None, Anthropic)
        model = urllib.parse.unquote(match[1]) if match and match.lastindex else body.get("model", "")
        what = self.server.behave or model
        seen = self.server.saw({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body, "raw": raw.decode(),
                                "behaviour": what}, what)
        self.shape = shape(model, True)
        if not match:
            return self.refuse(404, "not_found_error", f"no such path: {self.path}")
        try:
            self.answer(shape, model, what, seen)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    # ---- pieces -----------------------------------------------------------------------------------------------------------

    def refuse(self, status, kind, text, **headers):
        data = json.dumps(self.shape.refusal(status, kind, text)).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": len(data), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(data)

    def key(self):
        names = ("x-api-key", "authorization", "x-goog-api-key")
        return next((self.headers[n] for n in names if n in self.headers), "").removeprefix("Bearer ")

    def begin(self, kind=None):
        self.send_response(200)
        self.send_header("content-type", kind or self.shape.kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def send(self, text):
        data = text.encode() if isinstance(text, str) else text
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def finish_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def whole(self, shape, text, reason="end", end=True, write=None):
        write = write or self.send
        self.begin()
        write(shape.start())
        third = max(1, len(text) // 3)
        for i in range(0, len(text), third):
            write(shape.piece(text[i:i + third]))
        write(shape.stop(shape.REASONS[reason]))
        if end:
            write(shape.end())
        self.finish_stream()

    # ---- behaviours ---------------------------------------------------------------------------------------------------------

    def answer(self, make, model, what, seen):
        shape = make(model, True)
        if what in ("once-429", "once-529", "once-503", "always-429") and (seen == 1 or what.startswith("always")):
            later = {"retry_after": 0.02} if what.endswith("503") else {"retry_after_ms": 20}
            return self.refuse(int(what[-3:]), "overloaded_error", "come back later", **later)
        if what in ("401", "403"):
            return self.refuse(int(what), "authentication_error", f"invalid key: {self.key()}")
        if what in ("400", "404", "413"):
            return self.refuse(int(what), "invalid_request_error", "this request\n cannot be \x1b[31mserved")
        if what == "no-retry":
            return self.refuse(500, "api_error", "broken for good", x_should_retry="false")
        if what == "redirect":
            return self.refuse(302, "moved", "elsewhere", location="http://127.0.0.1:1/")
        if what == "once-inside" and seen == 1:
            if make is Bedrock:  # has no inside
                return self.refuse(503, "overloaded_error", "Overloaded", retry_after_ms=20)
            self.begin()
            self.send(shape.error("overloaded_error", "Overloaded"))
            return self.finish_stream()
        if what == "inside":
            self.begin()
            self.send(shape.start() + shape.piece("half an ans") + shape.error("overloaded_error", "Overloaded"))
            return self.finish_stream()
        if what in ("cut", "never"):
            self.begin()
            self.send(shape.start() + shape.piece("half an ans"))
            if what == "never":
                time.sleep(30)
            return self.hang_up()
        if what == "cut-early":
            return self.hang_up()
        if what == "garbage":
            self.begin()
            self.send("data: {\"type\": oops\n\n")
            return self.finish_stream()
        if what == "html":
            self.begin("text/html")
            self.send("<html><body>Welcome to the \x1b[31mproxy</body></html>")
            return self.finish_stream()
        if what in ("huge", "endless-line"):
            self.begin()
            self.send(shape.start() if what == "huge" else "data: ")
            for _ in range(6 * LIMIT // 50000):
                self.send(shape.piece("x" * 50000) if what == "huge" else "x" * 50000)
            return self.finish_stream()
        text = self.server.next_text()  # only an answer that is given uses one up
        if what == "slow":
            return self.whole(shape, text, write=lambda s: [(self.send(c), time.sleep(0.002)) for c in [s[i:i + 40] for i in range(0, len(s), 40)]])
        if what == "split":
            return self.whole(shape, text, write=lambda s: [self.send(bytes([b])) for b in s.replace("\n", "\r\n").encode()])
        if what == "no-usage":
            return self.whole(make(model, None), text)
        if what == "bad-usage":
            return self.whole(make(model, {"input_tokens": -5, "output_tokens": 10 ** 15, "prompt_tokens": "many", "completion_tokens": -1}), text)
        if what == "no-end":
            return self.whole(shape, text, end=False)
        if what == "cut-late":
            self.begin()
            self.send(shape.start() + shape.piece(text) + shape.stop(shape.REASONS["end"]) + shape.end())
            return self.hang_up()
        if what == "echo":
            return self.whole(make(self.key(), True), f"your key is {self.key()}")
        if what == "escape":
            return self.whole(make("\x1b[31m<script>" + "m" * 400, True), "a\x1b[2Jb")
        return self.whole(shape, text, {"max-tokens": "length", "refusal": "refusal"}.get(what, "end"))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port=0, log=None, replies=None, behave=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.lock, self.log, self.behave, self.seen, self.counts = threading.Lock(), log, behave, [], {}
        self.replies = list(replies) if replies is not None else None
        self.port = self.server_address[1]

    def saw(self, request, what):
        """How often this behaviour was asked for in this shape, this time included."""
        with self.lock:
            self.seen.append(request)
            name = (request["path"], what)
            self.counts[name] = self.counts.get(name, 0) + 1
            if self.log:
                with open(self.log, "a", encoding="utf-8") as f:
                    f.write(json.dumps(request) + "\n")
            return self.counts[name]

    def next_text(self):
        with self.lock:
            if self.replies is None:
                return TEXT
            return self.replies.pop(0) if self.replies else "DONE: the server has no more replies\n"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, ValueError)):  # a client that hung up is one of the tests
            super().handle_error(request, client_address)

    def requests(self):
        with self.lock:
            return list(self.seen)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()  # how long its end may wait
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--log")
    p.add_argument("--replies")
    p.add_argument("--behave")
    o = p.parse_args()
    with Server(o.port, o.log, read_replies(o.replies) if o.replies else None, o.behave) as server:
        print(f"port {server.port}\n", end="", flush=True)
        while os.read(0, 4096):
            pass


if __name__ == "__main__":
    sys.exit(main())
