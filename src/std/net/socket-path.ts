/** The longest path of a Unix socket in Linux, in bytes (unix(7)). */
export const SOCKET_PATH_BYTES_MAX = 107;

/** Throws for a path that no socket can have. */
export function checkSocketPath(path: string): void {
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    throw new Error(`the path of the socket has more than ${SOCKET_PATH_BYTES_MAX} bytes: ${path}`);
  }
}
