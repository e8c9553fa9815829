/**
 * Turns off ONNX Runtime's telemetry, which its Linux builds send to their vendor by default.
 *
 * The library reads the variable when it is loaded, so this module must be imported first. A worker thread has
 * a copy of the environment that native code does not see; there the main thread's import counts.
 */
process.env.ORT_DISABLE_TELEMETRY = "1";
