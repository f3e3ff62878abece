/** `svc token create`: lets one more machine join, and prints the command to run there. */
import { publicKeyHash } from "../../agent/api-server/join.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { BOOTSTRAP_GROUP, CLUSTER_INFO } from "../../apiserver/control-plane/node-bootstrap.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import { invoke } from "../../flags/program.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { systemClock } from "../../std/time/clock.ts";
import { GIT_VERSION } from "../../std/version.ts";
import { type tokenFlags, tokenProgram } from "./token-flags.ts";

const NAMESPACE = "svc-system";
const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_CHARS = 6;
const SECRET_CHARS = 16;

const VERB = "create";

export async function run(argv: readonly string[]): Promise<number> {
  const [verb = "", ...rest] = argv;
  const asksForHelp = argv.some((word) => word === "--help" || word === "-h");
  if (verb !== VERB && !asksForHelp) {
    process.stderr.write(`svc token: expected ${VERB}${verb === "" ? "" : `, found ${JSON.stringify(verb)}`}\n`);
    process.stderr.write("See svc token --help.\n");
    return 1;
  }
  const invocation = invoke(tokenProgram, asksForHelp ? ["--help"] : rest, { version: GIT_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  try {
    process.stdout.write(await invitation(invocation.flags));
    return 0;
  } catch (error) {
    process.stderr.write(`svc token create: ${(error as Error).message}\n`);
    return 1;
  }
}

/** The command that has a machine join. Rejects with one sentence for the operator. */
export async function invitation({ svcconfig, server, ttl }: ParsedFlags<typeof tokenFlags>): Promise<string> {
  const access = await loadKubeconfig(svcconfig);
  if (access.ca === undefined) throw new Error(`${svcconfig} names no authority: nobody could check the server`);
  await using transport = networkTransport(access);
  const client = createClient({ transport });
  const url = server === "" ? ((await advertised(client)) ?? access.server) : server;
  const token = await createToken(client, systemClock.now() + ttl);
  return `svc agent --join ${url} --token ${token} --ca-hash ${publicKeyHash(access.ca)}\n`;
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
      "auth-extra-groups": BOOTSTRAP_GROUP,
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
