/** Keeps the event loop from turning for this time. */
export function blockEventLoop(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}
