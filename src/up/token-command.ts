/** `svc token create`: lets one more machine join, and prints the command to run there. */
import { parseArgs } from "node:util";
import { hashOf } from "../agent/join.ts";
import { configMapKind } from "../api/core/config-map-kind.ts";
import { secretKind } from "../api/core/secret-kind.ts";
import { CLUSTER_INFO, JOINING_GROUP } from "../apiserver/own-objects/node-joining.ts";
import { createClient } from "../client/api-client.ts";
import type { Client } from "../client/client.ts";
import { loadKubeconfig } from "../client/kubeconfig.ts";
import { networkTransport } from "../client/transport.ts";
import { parseDuration } from "../flags/types/duration.ts";
import { parseYaml } from "../schema/yaml.ts";
import { systemClock } from "../std/clock.ts";
import { systemRandom } from "../std/random.ts";

const NAMESPACE = "svc-system";
const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_CHARS = 6;
const SECRET_CHARS = 16;

const USAGE = `Usage: svc token create [flags]

Makes a token with which a machine can join the cluster, and prints the command that does it.

  --svcconfig FILE   connection file of an administrator (default /var/lib/svc/admin.svcconfig)
  --server URL       where the machine reaches the API server (default what the cluster says of itself)
  --ttl DURATION     how long the token can be used (default 24h)
`;

export async function run(argv: readonly string[]): Promise<number> {
  const [verb, ...rest] = argv;
  if (argv.some((word) => word === "--help" || word === "-h")) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (verb !== "create") {
    process.stderr.write(`svc token: expected create\n\n${USAGE}`);
    return 1;
  }
  try {
    process.stdout.write(await create(rest));
    return 0;
  } catch (error) {
    process.stderr.write(`svc token create: ${(error as Error).message}\n`);
    return 1;
  }
}

async function create(argv: readonly string[]): Promise<string> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      svcconfig: { type: "string", default: "/var/lib/svc/admin.svcconfig" },
      server: { type: "string" },
      ttl: { type: "string", default: "24h" },
    },
  });
  const ttl = parseDuration(values.ttl);
  if (ttl === undefined || ttl <= 0) throw new Error(`--ttl=${values.ttl} is no duration; 24h is one`);
  const access = await loadKubeconfig(values.svcconfig);
  if (access.ca === undefined) throw new Error(`${values.svcconfig} names no authority: nobody could check the server`);
  await using transport = networkTransport(access);
  const client = createClient({ transport });
  const server = values.server ?? (await advertised(client)) ?? access.server;
  const token = await createToken(client, systemClock.now() + ttl);
  return `svc agent --join ${server} --token ${token} --ca-hash ${hashOf(access.ca)}\n`;
}

/** The token: whoever shows it until then may ask for the certificate of a node. */
export async function createToken(client: Client, until: number): Promise<string> {
  const [id, secret] = [letters(ID_CHARS), letters(SECRET_CHARS)];
  await client.create(secretKind, {
    metadata: { namespace: NAMESPACE, name: `bootstrap-token-${id}` },
    type: "bootstrap.svc.io/token",
    stringData: {
      "token-id": id,
      "token-secret": secret,
      expiration: new Date(until).toISOString(),
      "usage-bootstrap-authentication": "true",
      "auth-extra-groups": JOINING_GROUP,
    },
  });
  return `${id}.${secret}`;
}

/** Each letter as likely as the others. */
function letters(count: number): string {
  let found = "";
  while (found.length < count) {
    for (const byte of systemRandom.bytes(count)) {
      if (byte < 252 && found.length < count) found += LETTERS[byte % LETTERS.length];
    }
  }
  return found;
}

async function advertised(client: Client): Promise<string | undefined> {
  const { data } = await client.get(configMapKind, CLUSTER_INFO);
  const [document] = parseYaml(data?.kubeconfig ?? "");
  const { clusters = [] } = (document?.value ?? {}) as {
    readonly clusters?: readonly { readonly cluster?: { readonly server?: unknown } }[];
  };
  const server = clusters[0]?.cluster?.server;
  return typeof server === "string" ? server : undefined;
}
