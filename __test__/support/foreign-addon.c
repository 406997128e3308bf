// An addon beside snowdrift's, for __test__/runtime/hostile-callers.test.js: array buffers at odd addresses, and objects that
// wrap pointers of its own.

#include <node_api.h>
#include <stdlib.h>

enum { LENGTH = 1 << 16 };

static napi_value odd_buffer(napi_env env, napi_callback_info info) {
  napi_value buffer;
  char *start = calloc(1, LENGTH + 1);
  napi_create_external_arraybuffer(env, start + 1, LENGTH, NULL, NULL, &buffer);
  return buffer;
}

static napi_value wrapping_object(napi_env env, napi_callback_info info) {
  napi_value object;
  napi_create_object(env, &object);
  napi_wrap(env, object, calloc(1, LENGTH), NULL, NULL, NULL);
  return object;
}

NAPI_MODULE_INIT() {
  napi_value made;
  napi_create_function(env, "oddBuffer", NAPI_AUTO_LENGTH, odd_buffer, NULL, &made);
  napi_set_named_property(env, exports, "oddBuffer", made);
  napi_create_function(env, "wrappingObject", NAPI_AUTO_LENGTH, wrapping_object, NULL, &made);
  napi_set_named_property(env, exports, "wrappingObject", made);
  return exports;
}
