/** For benchmarks: credentials for each authentication method, and the server's configuration that accepts them. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiServerConfig } from "../apiserver/config/config.ts";
import { defaultConfig } from "../apiserver/config/default-config.ts";
import { startTestIssuer } from "../testing/auth/test-issuer.ts";
import { CLIENT_AUTH, makeCertificate } from "../testing/http/test-certificates.ts";

export interface BenchCredentials extends AsyncDisposable {
  readonly settings: ApiServerConfig["authentication"];
  /** Certificate chains of `jo`, which is also the name of an authenticating proxy, and of `system:node:n1`. */
  readonly certificates: { readonly jo: readonly Uint8Array[]; readonly node: readonly Uint8Array[] };
  /** Identity headers of the proxy for `jo`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Tokens of `jo`: of the token file, and an ID token. */
  readonly tokens: { readonly file: string; readonly idToken: string };
}

export async function benchCredentials(): Promise<BenchCredentials> {
  const directory = await mkdtemp(join(tmpdir(), "svc-bench-"));
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  const issuer = await startTestIssuer(() => Date.now());
  const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
  const client = (name: string, ...groups: readonly string[]) =>
    makeCertificate({
      subject: [{ CN: [name] }, ...groups.map((group) => ({ O: [group] }))],
      issuer: ca,
      usages: [CLIENT_AUTH],
    });
  const settings = {
    ...defaultConfig.authentication,
    clientCaFile: await file("ca.crt", ca.cert),
    tokenFile: await file("tokens", "sesame,jo,1\n"),
    requestHeader: {
      caFile: await file("proxies.crt", ca.cert),
      allowedNames: ["jo"],
      usernames: ["X-Remote-User"],
      groups: ["X-Remote-Group"],
      uids: [],
      extraPrefixes: ["X-Remote-Extra-"],
    },
    oidc: {
      issuerUrl: issuer.url,
      clientId: "client",
      caFile: await file("issuer.crt", issuer.ca),
      usernameClaim: "sub",
      usernamePrefix: "-",
      groupsClaim: "",
      groupsPrefix: "",
      requiredClaims: {},
      signingAlgorithms: ["RS256"],
    },
  };
  return {
    settings,
    certificates: { jo: [(await client("jo")).der], node: [(await client("system:node:n1", "system:nodes")).der] },
    headers: { "x-remote-user": "jo", "x-remote-group": "a" },
    tokens: { file: "sesame", idToken: issuer.token() },
    [Symbol.asyncDispose]: async () => {
      await issuer[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Copies of a string. Each request has a new string object, whose first lookup in a Map has to hash it. */
export function copiesOf(text: string): readonly string[] {
  return Array.from({ length: 256 }, () => Buffer.from(text).toString("latin1"));
}
