/** One profile of this process at a time. */
import type { Profiler as V8 } from "node:inspector";
import { type Session as InspectorSession, Session } from "node:inspector/promises";
import type { Clock } from "../../../std/time/clock.ts";
import { type SampledHeap, toCpuStacks, toHeapStacks } from "./v8-profiles.ts";

/** A thousand a second: ten times as fine as Go's. */
const CPU_INTERVAL_US = 1000;
const HEAP_INTERVAL_BYTES = 64 * 1024;
const TRACE_CATEGORIES = ["v8", "node.perf", "node.async_hooks", "node.http", "node.fs.async"];
/** Events of a trace beyond these are left out. */
const TRACE_EVENTS_MAX = 200_000;

/** Somebody else is at it. */
export class ProfilerBusyError extends Error {
  override readonly name = "ProfilerBusy";
}

export class Profiler {
  readonly #clock: Clock;
  #busyWith: string | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Where the processor's time went. Ends early, with the signal's reason, when that aborts. */
  async cpu(seconds: number, signal: AbortSignal) {
    return await this.#runExclusively("cpu profiling", async (session) => {
      const startedMs = this.#clock.now();
      await session.post("Profiler.enable");
      await session.post("Profiler.setSamplingInterval", { interval: CPU_INTERVAL_US });
      await session.post("Profiler.start");
      let profile: V8.Profile;
      try {
        await this.#clock.sleep(seconds * 1000, signal);
      } finally {
        ({ profile } = await session.post("Profiler.stop"));
      }
      return { raw: profile, stacks: toCpuStacks(profile, CPU_INTERVAL_US, startedMs) };
    });
  }

  /** What was allocated meanwhile: all of it (`alloc`), or what is there still at the end (`inuse`). */
  async heap(kind: "inuse" | "alloc", seconds: number, signal: AbortSignal) {
    return await this.#runExclusively("heap profiling", async (session) => {
      const startedMs = this.#clock.now();
      const gone = kind === "alloc";
      await session.post("HeapProfiler.enable");
      await session.post("HeapProfiler.startSampling", {
        samplingInterval: HEAP_INTERVAL_BYTES,
        includeObjectsCollectedByMajorGC: gone,
        includeObjectsCollectedByMinorGC: gone,
      });
      let profile: SampledHeap;
      try {
        await this.#clock.sleep(seconds * 1000, signal);
      } finally {
        const stopped = await session.post("HeapProfiler.stopSampling");
        profile = stopped.profile as unknown as SampledHeap;
      }
      const times = { startedMs, durationMs: this.#clock.now() - startedMs };
      return { raw: profile, stacks: toHeapStacks(profile, kind, HEAP_INTERVAL_BYTES, times) };
    });
  }

  /** Events of Node and V8, in the form that Chrome and Perfetto show. */
  async trace(seconds: number, signal: AbortSignal): Promise<object> {
    return await this.#runExclusively("tracing", async (session) => {
      const traceEvents: object[] = [];
      const complete = new Promise<void>((resolve) => session.once("NodeTracing.tracingComplete", () => resolve()));
      session.on("NodeTracing.dataCollected", ({ params }) => {
        if (traceEvents.length < TRACE_EVENTS_MAX) traceEvents.push(...(params.value as object[]));
      });
      await session.post("NodeTracing.start", { traceConfig: { includedCategories: TRACE_CATEGORIES } });
      try {
        await this.#clock.sleep(seconds * 1000, signal);
      } finally {
        await session.post("NodeTracing.stop");
        await complete;
      }
      return { traceEvents };
    });
  }

  async #runExclusively<T>(what: string, work: (session: InspectorSession) => Promise<T>): Promise<T> {
    if (this.#busyWith !== undefined) {
      throw new ProfilerBusyError(`Could not enable ${what}: ${this.#busyWith} already in use`);
    }
    this.#busyWith = what;
    const session = new Session();
    try {
      session.connect();
      return await work(session);
    } finally {
      session.disconnect();
      this.#busyWith = undefined;
    }
  }
}
