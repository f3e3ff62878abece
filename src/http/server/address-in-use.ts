/** Adds to EADDRINUSE, the most frequent reason for a failed start, the flag that sets another port. */
export async function explainAddressInUse<T>(flag: string, start: Promise<T>): Promise<T> {
  try {
    return await start;
  } catch (cause) {
    const { code, port } = cause as NodeJS.ErrnoException & { readonly port?: number };
    if (code !== "EADDRINUSE") throw cause;
    const message = `Cannot listen on port ${port}: another program uses it; set another port with ${flag}`;
    // With code and port a caller whose flag has another name can explain the error again.
    throw Object.assign(new Error(message), { code, port });
  }
}
