# find_package(klineage): klineage::klgate is the gate, klineage::klineage everything.
include(${CMAKE_CURRENT_LIST_DIR}/klineage-targets.cmake)
