/** CPU time of a request with features on and off, by turns in one run. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus, quantile } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { cpuMs } from "./process.ts";
import { BenchServer } from "./server.ts";

type Verb = "GET" | "PUT";

interface Feature {
  readonly name: string;
  readonly on: (folder: string) => readonly string[];
  /** Flags of a second server; absent: one server has the feature for the objects or requests of one user only. */
  readonly off?: readonly string[];
  readonly verbs: readonly Verb[];
  /** Creates what the feature needs. */
  readonly prepare?: (server: BenchServer) => Promise<void>;
  /** The aim, in microseconds that the feature adds to each request. */
  readonly aimUs?: number;
}

/** Neither is a member of system:masters, whom some features exempt. */
const USERS = { on: "bench-on", off: "bench-off" } as const;
const CONCURRENCY = 16;
const FORBIDDEN = "forbidden-0";

/** Each user has objects of their own. */
function nameOf(user: string, index: number): string {
  return `${user}-${index % CONCURRENCY}`;
}

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
/** A policy of what is common: a condition on the object, one on the user, a message. */
const policySpec = {
  failurePolicy: "Fail",
  matchConstraints: {
    resourceRules: [
      {
        apiGroups: [""],
        apiVersions: ["v1"],
        operations: ["CREATE", "UPDATE"],
        resources: ["configmaps"],
        resourceNames: [FORBIDDEN, ...Array.from({ length: CONCURRENCY }, (_, index) => nameOf(USERS.on, index))],
      },
    ],
  },
  variables: [{ name: "length", expression: "object.data.size()" }],
  validations: [
    { expression: "variables.length < 10", messageExpression: "'too many keys: ' + string(variables.length)" },
    { expression: "!object.metadata.name.startsWith('forbidden-') || request.userInfo.username == 'admin'" },
  ],
};

const features: readonly Feature[] = [
  {
    name: "fairness",
    on: () => ["--enable-priority-and-fairness=true"],
    off: ["--enable-priority-and-fairness=false"],
    verbs: ["GET", "PUT"],
  },
  {
    name: "audit (Metadata, batch)",
    on: (folder) => {
      const policy = join(folder, "audit-policy.json");
      const rules = [{ level: "Metadata", users: [USERS.on] }];
      writeFileSync(policy, JSON.stringify({ apiVersion: "audit.svc.io/v1", kind: "Policy", rules }));
      return [
        `--audit-policy-file=${policy}`,
        `--audit-log-path=${join(folder, "audit.log")}`,
        "--audit-log-mode=batch",
        "--audit-log-maxsize=1000",
      ];
    },
    verbs: ["GET", "PUT"],
    aimUs: 15,
  },
  {
    name: "a validating policy",
    on: () => [],
    prepare: createPolicy,
    verbs: ["PUT"],
    aimUs: 10,
  },
  {
    name: "encryption (aesgcm)",
    on: (folder) => {
      const path = join(folder, "encryption.json");
      const secret = Buffer.alloc(32, 1).toString("base64");
      const providers = [{ aesgcm: { keys: [{ name: "k1", secret }] } }, { identity: {} }];
      const resources = [{ resources: ["configmaps"], providers }];
      const kind = "EncryptionConfiguration";
      writeFileSync(path, JSON.stringify({ apiVersion: "apiserver.svc.io/v1", kind, resources }));
      return [`--encryption-provider-config=${path}`];
    },
    off: [],
    verbs: ["GET", "PUT"],
  },
];

const WARM_UP = 3000;
const REQUESTS = 400;
/** By turns, each next to the other; the figures are medians, since the machine may be shared. */
const ROUNDS = 41;
/** The time in which a policy takes effect, and the start of a server ends. */
const SETTLE_MS = 500;

export async function measureRequestCost(figures: Figures, program: readonly string[]): Promise<void> {
  for (const feature of features) {
    const folder = mkdtempSync(join(tmpdir(), "svc-bench-cost-"));
    try {
      await measureFeature(figures, program, feature, folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

async function measureFeature(
  figures: Figures,
  program: readonly string[],
  { name, on, off, verbs, prepare, aimUs }: Feature,
  folder: string,
): Promise<void> {
  await using server = await startServer(program, on(folder));
  await prepare?.(server);
  // Two processes of one program differ by a tenth.
  await using other = off === undefined ? undefined : await startServer(program, off);
  using enabled = await Subject.create(server, USERS.on);
  using disabled = await Subject.create(other ?? server, USERS.off);
  const subjects = [disabled, enabled];
  for (const verb of verbs) {
    for (const subject of subjects) await subject.run(verb, WARM_UP);
    const rounds: (readonly [number, number])[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const first = round % 2 === 0 ? await disabled.run(verb, REQUESTS) : undefined;
      const added = await enabled.run(verb, REQUESTS);
      rounds.push([first ?? (await disabled.run(verb, REQUESTS)), added]);
    }
    const middle = (read: (round: readonly [number, number]) => number): number => quantile(rounds.map(read), 0.5);
    figures.addAll(`${verb} of a ConfigMap, ${name} off and on`, {
      "µs CPU off": middle(([without]) => without),
      "µs CPU on": middle(([, enabled]) => enabled),
      "µs added": middle(([without, enabled]) => enabled - without),
      "× off": middle(([without, enabled]) => enabled / without),
      ...(aimUs === undefined ? {} : { "µs aim": aimUs }),
    });
  }
}

async function createPolicy(server: BenchServer): Promise<void> {
  using admin = new Connection(server.credentials);
  const metadata = { name: "bench" };
  const policy = { metadata, spec: policySpec };
  expectStatus(await admin.request("POST", `${ADMISSION}/validatingadmissionpolicies`, policy), 201);
  const binding = { metadata, spec: { policyName: "bench", validationActions: ["Deny"] } };
  expectStatus(await admin.request("POST", `${ADMISSION}/validatingadmissionpolicybindings`, binding), 201);
  await sleep(SETTLE_MS);
  const forbidden = configMap.create(FORBIDDEN);
  // Without effect the policy would cost nothing.
  using user = new Connection({ ...server.credentials, token: USERS.on });
  expectStatus(await user.request("POST", collectionOf(configMap), forbidden), 422);
}

async function startServer(program: readonly string[], flags: readonly string[]): Promise<BenchServer> {
  const users = Object.values(USERS);
  const server = await BenchServer.create(program);
  for (const user of users) server.addUser(user);
  await server.start(...flags);
  await server.allowEverything(users);
  return server;
}

/** One user of a server, and their objects. */
class Subject implements Disposable {
  readonly #server: BenchServer;
  readonly #user: string;
  readonly #connection: Connection;

  private constructor(server: BenchServer, user: string) {
    this.#server = server;
    this.#user = user;
    this.#connection = new Connection({ ...server.credentials, token: user });
  }

  static async create(server: BenchServer, user: string): Promise<Subject> {
    const subject = new Subject(server, user);
    for (let index = 0; index < CONCURRENCY; index++) {
      const object = configMap.create(nameOf(user, index));
      expectStatus(await subject.#connection.request("POST", collectionOf(configMap), object), 201);
    }
    return subject;
  }

  /** Returns microseconds of CPU time for each request. */
  async run(verb: Verb, count: number): Promise<number> {
    const { pid } = this.#server;
    const before = cpuMs(pid);
    await closedLoop(count, CONCURRENCY, async (index) => {
      const name = nameOf(this.#user, index);
      const body = verb === "PUT" ? { ...configMap.create(name), data: { index: String(index) } } : undefined;
      expectStatus(await this.#connection.request(verb, `${collectionOf(configMap)}/${name}`, body), 200);
    });
    return ((cpuMs(pid) - before) * 1000) / count;
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}
