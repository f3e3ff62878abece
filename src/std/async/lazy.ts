/**
 * A function that runs `create` with its first call, and returns that result from then on. After a rejection the next
 * call runs `create` again. Modules that few processes need are imported so, which saves time and memory at the start.
 */
export function lazy<T>(create: () => Promise<T>): () => Promise<T> {
  let created: Promise<T> | undefined;
  return () => {
    created ??= create().catch((error: unknown) => {
      created = undefined;
      throw error;
    });
    return created;
  };
}
