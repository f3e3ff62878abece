/**
 * A node without API server, seen from outside: a listener on loopback where kubectl reads what the node runs. The
 * agent itself writes its node, its lease and its events there as it would to a server.
 */
import { join } from "node:path";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { UserInfo } from "../../auth/user.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import type { Listener } from "../../http/server/listener.ts";
import type { Handler } from "../../http/message.ts";
import { listen } from "../../http/server/server.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { constantTimeEqual } from "../../std/crypto/constant-time-equal.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { Store } from "../../storage/store.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { StaticObjects } from "../sources/static-pods.ts";
import { removePassword } from "../sources/url-source.ts";
import { type StandaloneAccess, LOOPBACK, openAccess } from "./access.ts";
import { PublishedObjects } from "./published-objects.ts";

/** Who sends an `Authorization` header; undefined for nobody who may read. */
type AuthenticateReader = (authorization: string | undefined) => UserInfo | undefined;

/** The verbs over objects in a store; the API server's room has them, and `main` hands them in. */
export type MakeNodeApi = (options: {
  readonly store: Store;
  readonly prefix: string;
  readonly nodeName: string;
  readonly reader: AuthenticateReader;
  readonly logs: Handler;
  readonly refusal: string;
  readonly address: () => string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}) => { readonly inside: Handler; readonly outside: Handler } & AsyncDisposable;

export interface StandaloneOptions {
  readonly config: AgentConfig;
  readonly makeApi: MakeNodeApi;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

const PREFIX = "/registry";
/** Old revisions are of use to watches that were interrupted. */
const COMPACTION_MS = 300_000;
/** Requests in flight get this long when the agent stops. */
const DRAIN_MS = 1_000;

export class Standalone implements AsyncDisposable {
  /** For the node's object, its lease and events. */
  readonly client: Client;
  readonly #options: StandaloneOptions;
  readonly #stack = new AsyncDisposableStack();
  readonly #objects: PublishedObjects;
  readonly #access: StandaloneAccess;
  readonly #outside: Handler;
  #logs: Handler = async () => {
    throw new Error("the agent is starting");
  };
  #listener: Listener | undefined;

  private constructor(options: StandaloneOptions, access: StandaloneAccess) {
    this.#options = options;
    this.#access = access;
    const { config, makeApi, clock, random, log } = options;
    const store = this.#stack.use(createMemoryStore({ clock, compactionIntervalMs: COMPACTION_MS }));
    const api = this.#stack.use(
      makeApi({
        store,
        prefix: PREFIX,
        nodeName: config.nodeName,
        reader: createTokenAuthenticator(access.token),
        logs: (request) => this.#logs(request),
        refusal: writeRefusal(config),
        address: () => `${LOOPBACK}:${this.#listener?.port ?? 0}`,
        clock,
        random,
        log,
      }),
    );
    this.#outside = api.outside;
    this.client = createClient({ transport: api.inside });
    this.#objects = this.#stack.use(new PublishedObjects({ store, prefix: PREFIX, clock, random, log }));
  }

  /** Rejects when its directory cannot be used. */
  static async open(options: StandaloneOptions): Promise<Standalone> {
    const { config, clock } = options;
    const directory = join(config.rootDir, "standalone");
    return new Standalone(options, await openAccess({ directory, nodeName: config.nodeName, now: clock.now() }));
  }

  /** Lets clients in; `logs` answers `/containerLogs/…`. Rejects when there is no port to be had. */
  async listen(logs: Handler): Promise<void> {
    const { log } = this.#options;
    this.#logs = logs;
    const { port: before, path } = this.#access;
    const listener = await this.#open(before).catch(async (error: NodeJS.ErrnoException) => {
      if (before === 0 || error.code !== "EADDRINUSE") throw error;
      return await this.#open(0);
    });
    this.#listener = listener;
    this.#stack.defer(() => listener.close(DRAIN_MS));
    await this.#access.publish(listener.port);
    log.info("No API server: kubectl can read what this node runs", {
      svcconfig: path,
      server: `https://${LOOPBACK}:${listener.port}`,
    });
  }

  /** A pod as it is now. */
  putPod(pod: Pod, status: PodStatus): void {
    this.#objects.putPod(pod, status);
  }

  /** A pod of which nothing is left. */
  deletePod(pod: Pod): void {
    this.#objects.deletePod(pod);
  }

  /** What lies beside the pods. */
  putManifestObjects(objects: StaticObjects): void {
    this.#objects.putManifestObjects(objects);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #open(port: number): Promise<Listener> {
    const { clock, log } = this.#options;
    return listen({ handler: this.#outside, log, clock, host: LOOPBACK, port, tls: this.#access.serving });
  }
}

/** Whoever holds the token may read all there is. */
function createTokenAuthenticator(token: string): AuthenticateReader {
  const reader = { name: "system:standalone-reader", uid: "", groups: ["system:authenticated"], extra: {} };
  return (authorization = "") => {
    const [, given] = /^bearer (\S+)$/i.exec(authorization) ?? [];
    return given !== undefined && constantTimeEqual(given, token) ? reader : undefined;
  };
}

function writeRefusal({ sources }: AgentConfig): string {
  const places = [sources.manifestPath, sources.manifestUrl === "" ? "" : removePassword(sources.manifestUrl)];
  const where = places.filter((place) => place !== "").join(" and ");
  const change = where === "" ? "it has no source of pods" : `change the manifests at ${where} instead`;
  return `this node runs without an API server and answers reading requests only: ${change}`;
}
