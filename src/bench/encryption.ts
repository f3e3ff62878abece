/** What encryption at rest adds to requests: servers with each provider and one without, in turn. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeKms } from "../testing/storage/fake-kms.ts";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { cpuMs } from "./process.ts";
import { BenchServer } from "./server.ts";

const ROUNDS = 3;
const COUNT = 1000;
const CONCURRENCY = 16;
const secret = Buffer.alloc(32, 1).toString("base64");

/** By title; undefined: no configuration. */
type Providers = Readonly<Record<string, readonly object[] | undefined>>;

type Verb = (connection: Connection, name: string) => Promise<void>;

const verbs: Readonly<Record<string, Verb>> = {
  CREATE: async (connection, name) => {
    expectStatus(await connection.request("POST", collectionOf(configMap), configMap.create(name)), 201);
  },
  GET: async (connection, name) => {
    expectStatus(await connection.request("GET", `${collectionOf(configMap)}/${name}`), 200);
  },
  PUT: async (connection, name) => {
    const object = { ...configMap.create(name), data: { text: "y".repeat(1000) } };
    expectStatus(await connection.request("PUT", `${collectionOf(configMap)}/${name}`, object), 200);
  },
};

export async function measureEncryption(figures: Figures, program: readonly string[]): Promise<void> {
  await using plugin = await FakeKms.start();
  const local = (type: string): readonly object[] => [{ [type]: { keys: [{ name: "k1", secret }] } }, { identity: {} }];
  const providers: Providers = {
    "without encryption": undefined,
    "with secretbox": local("secretbox"),
    "with aesgcm": local("aesgcm"),
    "with KMS v2": [{ kms: { apiVersion: "v2", name: "p", endpoint: plugin.endpoint } }, { identity: {} }],
  };
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-encryption-"));
  const servers: { readonly title: string; readonly server: BenchServer; readonly connection: Connection }[] = [];
  const used: Record<string, Record<string, number>> = {};
  try {
    for (const [title, list] of Object.entries(providers)) {
      const server = await BenchServer.create(program);
      await server.start(...(list === undefined ? [] : [`--encryption-provider-config=${write(folder, title, list)}`]));
      servers.push({ title, server, connection: new Connection(server.credentials) });
    }
    // The first round compiles the code.
    for (let round = 0; round <= ROUNDS; round++) {
      for (const { title, server, connection } of servers) {
        for (const [verb, run] of Object.entries(verbs)) {
          const before = cpuMs(server.pid);
          await closedLoop(COUNT, CONCURRENCY, (index) => run(connection, `r${round}-${index}`));
          const row = used[verb] ?? {};
          used[verb] = row;
          if (round > 0) row[title] = (row[title] ?? 0) + (cpuMs(server.pid) - before);
        }
      }
    }
  } finally {
    for (const { server, connection } of servers) {
      connection[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    }
    rmSync(folder, { recursive: true });
  }
  for (const [verb, row] of Object.entries(used)) {
    const each = (title: string): number => ((row[title] ?? Number.NaN) * 1000) / (ROUNDS * COUNT);
    const plain = each("without encryption");
    for (const title of Object.keys(providers)) {
      const microseconds = each(title);
      const what = `${verb} of a ${configMap.title} ${title}`;
      figures.addAll(what, { "µs CPU each": microseconds, "× without": microseconds / plain });
    }
  }
}

function write(folder: string, title: string, providers: readonly object[]): string {
  const path = join(folder, `${title.replaceAll(" ", "-")}.json`);
  const resources = [{ resources: ["configmaps"], providers }];
  writeFileSync(
    path,
    JSON.stringify({ apiVersion: "apiserver.svc.io/v1", kind: "EncryptionConfiguration", resources }),
  );
  return path;
}
