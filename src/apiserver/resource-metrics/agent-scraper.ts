/**
 * Scrapes the agents' `/metrics/resource` while clients read metrics: the first request starts it, with two scrapes at
 * a short interval, and it stops when no request came for some minutes. Then nothing is kept.
 */
import type { Node } from "../../api/core/node/schema.ts";
import { Semaphore } from "../../std/async/semaphore.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConnections } from "../proxy/agent-connections.ts";
import { type ResourceReading, readResourcePage } from "./resource-page.ts";
import { addReading, type NodeSamples } from "./usage.ts";

export interface AgentScraperOptions {
  /** All nodes, from the cache. */
  readonly nodes: (signal: AbortSignal) => Promise<readonly Node[]>;
  readonly agents: Pick<AgentConnections, "get">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** As metrics-server. */
const INTERVAL_MS = 15_000;
/** Between the first two scrapes. */
const FIRST_INTERVAL_MS = 2_000;
/** The scraper stops after this time without a request. */
const IDLE_MS = 5 * 60_000;
/** Samples of an agent that does not respond are served until they are this old. */
const SAMPLE_AGE_MS_MAX = 60_000;
/** Agents that are scraped at the same time. */
const PARALLEL_SCRAPES = 32;
/** From the connection to the end of the response; shorter at first, since the first request waits. */
const SCRAPE_TIMEOUT_MS = 10_000;
const FIRST_SCRAPE_TIMEOUT_MS = 3_000;
/** The longest time that the first request waits. */
const FIRST_REQUEST_MS_MAX = 8_000;
const PATH = "/metrics/resource";

interface AgentState {
  readonly samples: NodeSamples;
  /** `Clock.monotonic()` of the last response. */
  readonly receivedAt: number;
}

export class AgentScraper implements AsyncDisposable {
  readonly #options: AgentScraperOptions;
  readonly #stopping = new AbortController();
  readonly #limit = new Semaphore(PARALLEL_SCRAPES);
  readonly #states = new Map<string, AgentState>();
  /** Nodes whose last scrape failed; they are scraped after the others. */
  readonly #failing = new Set<string>();
  #lastRequestAt = 0;
  /** Ends when the scraper stops; undefined while it does not run. */
  #running: Promise<void> | undefined;
  #firstSamples: Promise<void> = Promise.resolve();

  constructor(options: AgentScraperOptions) {
    this.#options = options;
  }

  /**
   * Starts scraping if necessary, and resolves when agents were scraped twice, when none responds, or after some
   * seconds.
   */
  async request(signal: AbortSignal): Promise<void> {
    this.#stopping.signal.throwIfAborted();
    this.#lastRequestAt = this.#options.clock.monotonic();
    this.#running ??= this.#start();
    const waiting = new AbortController();
    const timeout = this.#options.clock.sleep(FIRST_REQUEST_MS_MAX, AbortSignal.any([signal, waiting.signal]));
    try {
      await Promise.race([this.#firstSamples, timeout]);
    } finally {
      timeout.catch(() => undefined);
      waiting.abort();
    }
  }

  /** The samples of a node; undefined when there are none, or when they are too old. */
  samplesOf(node: string): NodeSamples | undefined {
    const state = this.#states.get(node);
    if (state === undefined) return undefined;
    return this.#options.clock.monotonic() - state.receivedAt > SAMPLE_AGE_MS_MAX ? undefined : state.samples;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    await this.#running;
  }

  #start(): Promise<void> {
    const first = Promise.withResolvers<void>();
    this.#firstSamples = first.promise;
    const { log } = this.#options;
    log.v(2)?.info("Started scraping agents", { intervalMs: INTERVAL_MS });
    return this.#run(first.resolve).catch((error: unknown) => {
      this.#reset();
      first.resolve();
      if (!this.#stopping.signal.aborted) log.error("Failed to scrape agents", error);
    });
  }

  #reset(): void {
    this.#running = undefined;
    this.#states.clear();
    this.#failing.clear();
    this.#options.log.v(2)?.info("Stopped scraping agents");
  }

  async #run(markFirstSamples: () => void): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    for (let round = 1; ; round++) {
      const startedAt = clock.monotonic();
      await this.#scrapeAll(round <= 2 ? FIRST_SCRAPE_TIMEOUT_MS : SCRAPE_TIMEOUT_MS);
      signal.throwIfAborted();
      // There is nothing to wait for when no agent responds.
      if (round === 2 || this.#states.size === 0) markFirstSamples();
      if (clock.monotonic() - this.#lastRequestAt > IDLE_MS) {
        this.#reset();
        return;
      }
      const intervalMs = round === 1 ? FIRST_INTERVAL_MS : INTERVAL_MS;
      await clock.sleep(Math.max(0, startedAt + intervalMs - clock.monotonic()), signal);
    }
  }

  async #scrapeAll(timeoutMs: number): Promise<void> {
    const { signal } = this.#stopping;
    const nodes = await this.#options.nodes(signal);
    const names = new Set(nodes.map(nameOf));
    for (const name of this.#states.keys()) if (!names.has(name)) this.#states.delete(name);
    for (const name of this.#failing) if (!names.has(name)) this.#failing.delete(name);
    const isFailing = (node: Node): boolean => this.#failing.has(nameOf(node));
    const ordered = [...nodes.filter((node) => !isFailing(node)), ...nodes.filter(isFailing)];
    await Promise.all(ordered.map((node) => this.#limit.run(() => this.#scrape(node, timeoutMs), signal)));
  }

  /** Logs the first of consecutive failures. */
  async #scrape(node: Node, timeoutMs: number): Promise<void> {
    const { clock, log } = this.#options;
    const name = nameOf(node);
    try {
      const reading = await this.#fetch(node, timeoutMs);
      const samples = addReading(this.samplesOf(name), reading);
      this.#states.set(name, { samples, receivedAt: clock.monotonic() });
      if (this.#failing.delete(name)) log.info("Scraped the agent again", { node: name });
    } catch (error) {
      if (this.#stopping.signal.aborted || this.#failing.has(name)) return;
      this.#failing.add(name);
      log.warn("Failed to scrape the agent", { node: name, err: error instanceof Error ? error.message : error });
    }
  }

  async #fetch(node: Node, timeoutMs: number): Promise<ResourceReading> {
    const { agents, clock } = this.#options;
    const late = new AbortController();
    const timer = clock.timer(timeoutMs, () => late.abort(new Error(`no complete response within ${timeoutMs} ms`)));
    try {
      const signal = AbortSignal.any([this.#stopping.signal, late.signal]);
      const response = await agents.get(node, PATH, signal);
      if (response.status === 200) return await readResourcePage(response.body, clock.now());
      // Leaving the loop closes the response.
      for await (const _ of response.body) break;
      throw new Error(`GET ${PATH}: status ${response.status}`);
    } catch (error) {
      late.signal.throwIfAborted();
      throw error;
    } finally {
      timer.cancel();
    }
  }
}

function nameOf({ metadata }: Node): string {
  return metadata?.name ?? "";
}
