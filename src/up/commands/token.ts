/** `svc token create`: creates a bootstrap token and prints the command with which a machine joins the cluster. */
import { parseClusterInfo } from "../../agent/api-server/cluster-info.ts";
import { publicKeyHash } from "../../agent/api-server/join.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { isNotFound } from "../../api/status.ts";
import { AGENT_FLAGS, BOOTSTRAP_GROUP, CLUSTER_INFO } from "../../apiserver/control-plane/node-bootstrap.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import { invokeCommand } from "../../flags/commands.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { systemClock } from "../../std/time/clock.ts";
import { type tokenFlags, tokenProgram } from "./token-flags.ts";

const NAMESPACE = "svc-system";
const TOKEN_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_CHARS = 6;
const SECRET_CHARS = 16;

export async function run(argv: readonly string[]): Promise<number> {
  const invocation = await invokeCommand(tokenProgram, argv);
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  try {
    process.stdout.write(await createJoinCommand(invocation.flags));
    return 0;
  } catch (error) {
    process.stderr.write(`svc token create: ${(error as Error).message}\n`);
    return 1;
  }
}

/** Rejects with an error in one sentence, for the operator. */
export async function createJoinCommand({ svcconfig, server, ttl }: ParsedFlags<typeof tokenFlags>): Promise<string> {
  const access = await loadKubeconfig(svcconfig);
  if (access.ca === undefined) {
    throw new Error(`${svcconfig} has no certificate authority: machines could not verify the server`);
  }
  await using transport = networkTransport(access);
  const client = createClient({ transport });
  const { data } = await client.get(configMapKind, CLUSTER_INFO).catch((error: unknown) => {
    if (server !== "" && isNotFound(error)) return { data: undefined };
    throw error;
  });
  const url = server === "" ? (parseClusterInfo(data?.kubeconfig ?? "").server ?? access.server) : server;
  const token = await createToken(client, systemClock.now() + ttl);
  const words = ["--join", url, "--token", token, "--ca-hash", publicKeyHash(access.ca), data?.[AGENT_FLAGS] ?? ""];
  return `svc agent ${words.join(" ").trimEnd()}\n`;
}

/** Creates a bootstrap token: until it expires, its holder may request the certificate of a node. */
export async function createToken(client: Client, expiration: number): Promise<string> {
  const [id, secret] = [randomToken(ID_CHARS), randomToken(SECRET_CHARS)];
  await client.create(secretKind, {
    metadata: { namespace: NAMESPACE, name: `bootstrap-token-${id}` },
    type: "bootstrap.svc.io/token",
    stringData: {
      "token-id": id,
      "token-secret": secret,
      expiration: new Date(expiration).toISOString(),
      "usage-bootstrap-authentication": "true",
      "auth-extra-groups": BOOTSTRAP_GROUP,
    },
  });
  return `${id}.${secret}`;
}

/** Characters of the alphabet, each with the same probability. */
function randomToken(length: number): string {
  let token = "";
  while (token.length < length) {
    for (const byte of systemRandom.bytes(length)) {
      // 252 is the largest multiple of the alphabet's length in a byte.
      if (byte < 252 && token.length < length) token += TOKEN_ALPHABET[byte % TOKEN_ALPHABET.length];
    }
  }
  return token;
}
