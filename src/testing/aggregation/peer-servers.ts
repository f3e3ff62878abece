/** API servers over one store that forward requests to each other. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiServerConfig, PeersConfig } from "../../apiserver/config/config.ts";
import { createDefaultConfig } from "../../apiserver/config/default-config.ts";
import { type RunningApiServer, startApiServer } from "../../apiserver/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { CLIENT_AUTH, makeCertificate, SERVER_AUTH } from "../http/test-certificates.ts";
import { keepOpen } from "../storage/keep-open.ts";

export interface PeerServers extends AsyncDisposable {
  readonly servers: readonly RunningApiServer[];
  /** Sends a request of an administrator to one of the servers. */
  send(index: number, line: string, options?: PeerRequest): Promise<{ readonly status: number; readonly text: string }>;
}

interface PeerRequest {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts a server for each configuration. `peers` replaces settings by which they reach each other. */
export async function startPeerServers(
  configs: readonly Partial<ApiServerConfig>[],
  peers: Partial<PeersConfig> = {},
): Promise<PeerServers> {
  const folder = mkdtempSync(join(tmpdir(), "svc-peers-"));
  await using owned = new AsyncDisposableStack();
  owned.defer(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
  const names = ["localhost", "kubernetes.default.svc"];
  const serving = { issuer: ca, usages: [SERVER_AUTH], names, addresses: ["127.0.0.1"] };
  const server = await makeCertificate({ subject: [{ CN: ["apiserver"] }], ...serving });
  const proxy = await makeCertificate({ subject: [{ CN: ["front-proxy"] }], issuer: ca, usages: [CLIENT_AUTH] });
  const caFile = file("ca.crt", ca.cert);
  const base = createDefaultConfig({});
  const config: ApiServerConfig = {
    ...base,
    serving: {
      ...base.serving,
      certDir: folder,
      certificate: { certFile: file("server.crt", server.cert), keyFile: file("server.key", server.key) },
    },
    authentication: {
      ...base.authentication,
      tokenFile: file("tokens", 'secret,ann,uid-1,"system:masters"\n'),
      requestHeader: {
        caFile,
        allowedNames: ["front-proxy"],
        usernames: ["X-Remote-User"],
        uids: ["X-Remote-Uid"],
        groups: ["X-Remote-Group"],
        extraPrefixes: ["X-Remote-Extra-"],
      },
    },
    proxyClientCertificate: { certFile: file("proxy.crt", proxy.cert), keyFile: file("proxy.key", proxy.key) },
    peers: { forwards: true, advertiseIp: "127.0.0.1", advertisePort: undefined, caFile, ...peers },
  };
  const store = owned.use(createMemoryStore({ clock: systemClock }));
  const servers: RunningApiServer[] = [];
  for (const [index, own] of configs.entries()) {
    const deps = { clock: systemClock, log: silentLogger, store: keepOpen(store), hostName: `host-${index}` };
    servers.push(owned.use(await startApiServer({ ...config, ...own }, deps)));
  }
  const resources = owned.move();
  return {
    servers,
    send: (index, line, options) => send(servers[index]!.address.port, line, options),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

function send(
  port: number,
  line: string,
  { body, headers = {} }: PeerRequest = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const [method, path] = line.split(" ");
  const sent = { authorization: "Bearer secret", "content-type": "application/json", ...headers };
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method, path, headers: sent, rejectUnauthorized: false, agent: false };
    const outgoing = request(options, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
