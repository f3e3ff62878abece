/** For benchmarks: a way to prove who one is for each that the server knows, and the settings that let it know them. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiServerConfig } from "../apiserver/config/config.ts";
import { defaultConfig } from "../apiserver/config/default-config.ts";
import { startTestIssuer } from "../testing/auth/test-issuer.ts";
import { CLIENT_AUTH, makeCertificate } from "../testing/http/test-certificates.ts";

export interface BenchCredentials extends AsyncDisposable {
  readonly settings: ApiServerConfig["authentication"];
  /** The chains of `jo`, who is also a proxy's name, and of `system:node:n1`. */
  readonly certificates: { readonly jo: readonly Uint8Array[]; readonly node: readonly Uint8Array[] };
  /** What a proxy says of `jo`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of `jo`, of the token file and of an issuer. */
  readonly tokens: { readonly file: string; readonly identity: string };
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
    tokens: { file: "sesame", identity: issuer.token() },
    [Symbol.asyncDispose]: async () => {
      await issuer[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Node hands out a new text with every request: looking one up for the first time costs more. */
export function anew(text: string): readonly string[] {
  return Array.from({ length: 256 }, () => Buffer.from(text).toString("latin1"));
}
