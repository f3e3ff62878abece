/**
 * A node without API server: a listener on loopback where kubectl reads what the node runs. The agent writes its node,
 * lease and events there as to an API server.
 */
import { join } from "node:path";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { UserInfo } from "../../auth/user.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import type { Handler } from "../../http/message.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import { constantTimeEqual } from "../../std/crypto/constant-time-equal.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { Store } from "../../storage/store.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { StaticObjects } from "../sources/static-pods.ts";
import { removePassword } from "../sources/url-source.ts";
import { LOOPBACK, openAccess, type StandaloneAccess } from "./access.ts";
import { PublishedObjects } from "./published-objects.ts";

/** The user of an `Authorization` header; undefined when it may not read. */
type AuthenticateReader = (authorization: string | undefined) => UserInfo | undefined;

/** Makes the API over the objects in a store; implemented in `src/apiserver`, passed in by `main`. */
export type MakeNodeApi = (options: {
  readonly store: Store;
  readonly prefix: string;
  readonly nodeName: string;
  readonly authenticate: AuthenticateReader;
  readonly containerLogs: Handler;
  readonly readOnlyMessage: string;
  readonly address: () => string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}) => { readonly agentHandler: Handler; readonly clientHandler: Handler } & AsyncDisposable;

export interface StandaloneOptions {
  readonly config: AgentConfig;
  readonly makeApi: MakeNodeApi;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

const PREFIX = "/registry";
/** Old revisions serve watches that were interrupted. */
const COMPACTION_MS = 300_000;
/** Requests in flight get this long when the agent stops. */
const DRAIN_MS = 1_000;

export class Standalone implements AsyncDisposable {
  /** Writes the Node object, its lease and events. */
  readonly client: Client;
  readonly #options: StandaloneOptions;
  readonly #stack = new AsyncDisposableStack();
  readonly #objects: PublishedObjects;
  readonly #access: StandaloneAccess;
  readonly #clientHandler: Handler;
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
        authenticate: createTokenAuthenticator(access.token),
        containerLogs: (request) => this.#logs(request),
        readOnlyMessage: writeReadOnlyMessage(config),
        address: () => `${LOOPBACK}:${this.#listener?.port ?? 0}`,
        clock,
        random,
        log,
      }),
    );
    this.#clientHandler = api.clientHandler;
    this.client = createClient({ transport: api.agentHandler });
    this.#objects = this.#stack.use(new PublishedObjects({ store, prefix: PREFIX, clock, random, log }));
  }

  /** Rejects when its directory cannot be used. */
  static async open(options: StandaloneOptions): Promise<Standalone> {
    const { config, clock } = options;
    const directory = join(config.rootDir, "standalone");
    return new Standalone(options, await openAccess({ directory, nodeName: config.nodeName, now: clock.now() }));
  }

  /** Starts the listener; `logs` serves `/containerLogs/…`. Rejects when there is no free port. */
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

  /** Creates or updates a pod. */
  putPod(pod: Pod, status: PodStatus): void {
    this.#objects.putPod(pod, status);
  }

  /** Deletes a pod of which nothing is left. */
  deletePod(pod: Pod): void {
    this.#objects.deletePod(pod);
  }

  /** Replaces the other objects of the manifests. */
  putManifestObjects(objects: StaticObjects): void {
    this.#objects.putManifestObjects(objects);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #open(port: number): Promise<Listener> {
    const { clock, log } = this.#options;
    return listen({ handler: this.#clientHandler, log, clock, host: LOOPBACK, port, tls: this.#access.serving });
  }
}

/** The holder of the token may read everything. */
function createTokenAuthenticator(token: string): AuthenticateReader {
  const reader = { name: "system:standalone-reader", uid: "", groups: ["system:authenticated"], extra: {} };
  return (authorization = "") => {
    const [, sent] = /^bearer (\S+)$/i.exec(authorization) ?? [];
    return sent !== undefined && constantTimeEqual(sent, token) ? reader : undefined;
  };
}

function writeReadOnlyMessage({ sources }: AgentConfig): string {
  const sourceNames = [sources.manifestPath, sources.manifestUrl === "" ? "" : removePassword(sources.manifestUrl)];
  const where = sourceNames.filter((name) => name !== "").join(" and ");
  const change = where === "" ? "it has no source of pods" : `change the manifests at ${where} instead`;
  return `this node runs without an API server and serves read requests only: ${change}`;
}
