/** Returns free memory of the C library to the system, with the foreign function interface of Node.js 26. */

/** Undefined where Node.js has no such interface, and the C library is not glibc. */
export function findMallocTrim(): (() => void) | undefined {
  const { emitWarning } = process;
  // The interface is experimental, of which Node.js warns on standard error.
  process.emitWarning = () => {};
  try {
    const ffi: typeof import("node:ffi") | undefined = process.getBuiltinModule("node:ffi");
    const library = ffi?.dlopen(null, { malloc_trim: { arguments: ["u64"], return: "i32" } });
    return library && (() => void library.functions.malloc_trim(0n));
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}
