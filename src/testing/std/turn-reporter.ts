/**
 * Measures a server from inside: `node --import=…/turn-reporter.ts` with a port of 127.0.0.1 in `SVC_TURNS`. To
 * `begin` it answers with an empty line, and to `end` with the measured `Turns` in JSON.
 */
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { TurnMeter } from "./turn-meter.ts";

export interface Turns {
  /** CPU time of the longest turn of the event loop since `begin`. */
  readonly ms: number;
  /** By how much the heap and the buffers outside of it exceeded those at `begin`, at the end of a turn; in MiB. */
  readonly heapMiB: number;
}

/** Of memory. */
const SAMPLE_MS = 2;

function memoryMiB(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return (used_heap_size + external_memory) / 2 ** 20;
}

function listen(port: number): void {
  let meter: TurnMeter | undefined;
  let first = 0;
  let most = 0;
  let sampling: NodeJS.Timeout | undefined;
  const sample = (): void => {
    most = Math.max(most, memoryMiB());
  };
  const answer = (command: string): string => {
    if (command === "begin") {
      meter ??= new TurnMeter();
      first = memoryMiB();
      most = first;
      sampling ??= setInterval(sample, SAMPLE_MS);
      meter.take();
      return "";
    }
    const turns: Turns = { ms: meter?.take() ?? 0, heapMiB: Math.max(most, memoryMiB()) - first };
    clearInterval(sampling);
    meter?.[Symbol.dispose]();
    [meter, sampling] = [undefined, undefined];
    return JSON.stringify(turns);
  };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    createInterface({ input: socket }).on("line", (command) => socket.write(`${answer(command)}\n`));
  });
  server.listen(port, "127.0.0.1").unref();
}

const port = process.env.SVC_TURNS;
if (port !== undefined && isMainThread) listen(Number(port));
