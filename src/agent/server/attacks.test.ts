/** Attacks on the agent's server: authorization covers the path that is served, and logs are those of containers. */
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import t from "tap";
import { makeRequest } from "../../http/request.ts";
import { textResponse as refusalText } from "../../http/respond.ts";
import { parseTarget } from "../../http/server/request-target.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { defaultAgentConfig } from "../options.ts";
import { type AgentHandlerOptions, createAgentHandler } from "./agent-handler.ts";
import { createAgentAuthentication } from "./authentication.ts";
import { findSubresources } from "./authorization.ts";

const MARK = "the golden line";
const user = { name: "eve", uid: "", groups: [], extra: {} };

/** A pod `web` whose log has the mark, with other files around it. */
async function agent(options: Partial<AgentHandlerOptions>) {
  const at = await podHarness();
  at.manager.put(testPod("web"));
  await at.run(1);
  const [run] = at.manager.worker("uid-web")?.observation.containers ?? [];
  const logPath = run?.logPath ?? "";
  await mkdir(dirname(logPath), { recursive: true });
  await writeFile(logPath, `2026-01-01T00:00:00.000000000Z stdout F ${MARK}\n`);
  const handler = createAgentHandler({
    ...{ pods: at.manager, clock: at.clock, problems: () => [], configz: { mark: MARK }, debugging: true },
    authenticate: async () => user,
    nodeLogs: join(at.rootDir, "node-logs"),
    ...options,
  });
  const request = async (target: string, more: { method?: string; headers?: Record<string, string> } = {}) => {
    const parsed = parseTarget(target);
    if (parsed === undefined) return { status: 400, text: "" };
    const { status, body } = await handler(makeRequest({ ...parsed, ...more }));
    let text = "";
    for await (const chunk of body instanceof Uint8Array ? [body] : body) text += Buffer.from(chunk).toString();
    return { status, text };
  };
  return { logPath, request, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
}

const PATHS = ["pods", "runningpods", "configz", "containerLogs/default/web/c"];
const ALLOWED = ["stats", "metrics", "logs", "checkpoint", "statusz"];
const UPS = [
  "..",
  "%2e%2e",
  ".%2e",
  "..%2f",
  "%2e%2e%2f..",
  "..;",
  "..%5c",
  "\\..",
  ".",
  "",
  "%00",
  "%c0%ae%c0%ae",
  "x/..",
];

function* encodings(): Generator<string> {
  for (const path of PATHS) {
    yield* [`/${path}`, `/${path}/`, `//${path}`, `/./${path}`, `/%2f${path}`, `/${path}%00`, `/${path};`];
    yield* [`/%${path.charCodeAt(0).toString(16)}${path.slice(1)}`, `/${path.toUpperCase()}`, `http://x/${path}`];
    for (const allowed of ALLOWED) {
      for (const up of UPS)
        yield* [`/${allowed}/${up}/${path}`, `/${allowed}${up}/${path}`, `/${path}/${up}/${allowed}`];
      yield* [
        `/${allowed}%2f..%2f${path}`,
        `/${allowed}?/../${path}`,
        `/${path}?x=/${allowed}`,
        `/${path}#/${allowed}`,
      ];
    }
  }
}

t.test("createAgentHandler() serves only the path that was authorized, however it is encoded", async (t) => {
  const authorized: string[] = [];
  const lesser = new Set(["stats", "metrics", "log", "checkpoint"]);
  await using at = await agent({
    authorize: async (_, { path }) => {
      authorized.push(path);
      return findSubresources(path, true).some((each) => lesser.has(each))
        ? undefined
        : refusalText(403, "Forbidden\n");
    },
  });
  let refused = 0;
  for (const encoded of new Set(encodings())) {
    const { status, text } = await at.request(encoded);
    // Go's file server, which kubelet uses for logs, responds to NUL in a name with a 500.
    const isRefused = [301, 400, 403, 404, 405].includes(status) || (status === 500 && encoded.startsWith("/logs/%00"));
    t.ok(isRefused, `${status} ${encoded}`);
    t.notMatch(text, /golden|"kind":"PodList"/, encoded);
    if (status === 403) refused++;
  }
  t.ok(refused >= PATHS.length * 3, `${refused} of them are authorized`);
  await using open = await agent({});
  t.match((await open.request("/containerLogs/default/web/c")).text, MARK, "an authorized client gets it");
});

t.test("createAgentHandler() serves logs of containers only, and no file by a name that is a path", async (t) => {
  await using at = await agent({});
  const logs = dirname(at.logPath);
  await writeFile(join(logs, "secret.log"), `2026-01-01T00:00:00.000000000Z stdout F ${MARK}\n`);
  const names = ["..", "../..", "c/../c", "secret", "c/secret.log", ".", "", "c\0", "C", "c ", "*", "__proto__", "c%"];
  for (const name of names) {
    const encoded = encodeURIComponent(name);
    for (const path of [`default/web/${encoded}`, `default/${encoded}/c`, `${encoded}/web/c`, `default/web/${name}`]) {
      const { status, text } = await at.request(`/containerLogs/${path}`);
      t.ok([301, 400, 404].includes(status), `${status} ${path}`);
      t.notMatch(text, MARK, path);
    }
  }
  for (const [query, status] of [
    ["tailLines=-2", 422],
    ["limitBytes=1e9", 400],
    ["sinceSeconds=0x1", 400],
    ["tailLines=9999999999999999999", 400],
    ["tailLines=9999999999999999", 200],
    ["sinceTime=x", 400],
  ] as const) {
    t.equal((await at.request(`/containerLogs/default/web/c?${query}`)).status, status, query);
  }
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]) {
    t.equal((await at.request("/containerLogs/default/web/c", { method })).status, 405, method);
  }
});

t.test("createAgentHandler() does not follow a symbolic link in place of a log", async (t) => {
  await using at = await agent({});
  const host = t.testdir({ shadow: `2026-01-01T00:00:00.000000000Z stdout F ${MARK}\n` });
  await rm(at.logPath);
  await symlink(join(host, "shadow"), at.logPath);
  const response = await at
    .request("/containerLogs/default/web/c")
    .catch((error: unknown) => ({ status: 0, text: String(error) }));
  t.notMatch(response.text, MARK);
});

t.test("createAgentHandler() ignores identity headers, and refuses tokens that no authenticator accepts", async (t) => {
  const server = { ...defaultAgentConfig("n1").server, clientCaFile: "", anonymousAuth: false };
  await using at = await podHarness();
  using authentication = await createAgentAuthentication({
    server,
    client: undefined,
    clock: at.clock,
    log: silentLogger,
  });
  await using one = await agent({ authenticate: authentication.authenticate });
  const spoofed: readonly Record<string, string>[] = [
    {},
    { "x-remote-user": "root", "x-remote-group": "system:masters" },
    { "impersonate-user": "root", "impersonate-group": "system:masters" },
    { authorization: "Bearer nonsense" },
    { authorization: "Basic cm9vdDpyb290" },
    { "x-forwarded-client-cert": 'Subject="CN=system:masters"' },
  ];
  for (const headers of spoofed) {
    for (const path of PATHS) {
      // The root of a service that has only paths below it redirects, before authentication.
      const target = path === "runningpods" ? "/runningpods/" : `/${path}`;
      t.equal((await one.request(target, { headers })).status, 401, JSON.stringify(headers));
    }
  }
});
