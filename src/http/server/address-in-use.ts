/** A port that is taken is the commonest reason for a start to fail: the flag that chooses another is named. */
export async function explainAddressInUse<T>(flag: string, start: Promise<T>): Promise<T> {
  try {
    return await start;
  } catch (cause) {
    const { code, port } = cause as NodeJS.ErrnoException & { readonly port?: number };
    if (code !== "EADDRINUSE") throw cause;
    const why = `Cannot listen on port ${port}: another program does; choose another port with ${flag}`;
    // Whoever has called the flag by another name can say that one.
    throw Object.assign(new Error(why), { code, port });
  }
}
