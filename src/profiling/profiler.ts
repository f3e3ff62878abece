/** One profile of this process at a time. */
import type { Profiler as V8 } from "node:inspector";
import { type Session as InspectorSession, Session } from "node:inspector/promises";
import type { Clock } from "../std/time/clock.ts";
import { type SampledHeap, toCpuStacks, toHeapStacks } from "./v8-profiles.ts";

/** 1000 samples a second; Go takes 100. */
const CPU_INTERVAL_US = 1000;
const HEAP_INTERVAL_BYTES = 64 * 1024;
const TRACE_CATEGORIES = ["v8", "node.perf", "node.async_hooks", "node.http", "node.fs.async"];
/** Further events of a trace are dropped. */
const TRACE_EVENTS_MAX = 200_000;

/** Another profile is in progress. */
export class ProfilerBusyError extends Error {
  override readonly name = "ProfilerBusy";
}

export class Profiler {
  readonly #clock: Clock;
  #busyWith: string | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A CPU profile. Rejects with the signal's reason when it aborts. */
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

  /** A profile of allocations: all of them (`alloc`), or those that are live at the end (`inuse`). */
  async heap(kind: "inuse" | "alloc", seconds: number, signal: AbortSignal) {
    return await this.#runExclusively("heap profiling", async (session) => {
      const startedMs = this.#clock.now();
      const includeCollected = kind === "alloc";
      await session.post("HeapProfiler.enable");
      await session.post("HeapProfiler.startSampling", {
        samplingInterval: HEAP_INTERVAL_BYTES,
        includeObjectsCollectedByMajorGC: includeCollected,
        includeObjectsCollectedByMinorGC: includeCollected,
      });
      let profile: SampledHeap;
      try {
        await this.#clock.sleep(seconds * 1000, signal);
      } finally {
        const stopped = await session.post("HeapProfiler.stopSampling");
        profile = stopped.profile as typeof stopped.profile & SampledHeap;
      }
      const times = { startedMs, durationMs: this.#clock.now() - startedMs };
      return { raw: profile, stacks: toHeapStacks(profile, kind, HEAP_INTERVAL_BYTES, times) };
    });
  }

  /** Trace events of Node.js and V8 in the format of Chrome and Perfetto. */
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
