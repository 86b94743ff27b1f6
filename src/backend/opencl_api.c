typedef int opencl_api_is_empty;
