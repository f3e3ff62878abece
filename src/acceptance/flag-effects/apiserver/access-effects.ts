/** Effects of the flags for access, and for clusters in one process. */
import {
  type Effect,
  fetchStatus,
  file,
  type Name,
  PODS,
  parseFlags,
  pod,
  startAndClose,
  startServer,
  user,
} from "./support.ts";

export const accessEffects: Partial<Record<Name, Effect>> = {
  "anonymous-auth": async (t) => {
    await using server = await startServer({ "anonymous-auth": "false" });
    t.equal((await server.send("GET /api", undefined, {})).status, 401);
  },
  "client-ca-file": async (t) => {
    await using server = await startServer({ "client-ca-file": file("ca.crt"), "anonymous-auth": "false" });
    t.equal((await fetchStatus(server.port)).status, 401);
    t.equal((await fetchStatus(server.port, { cert: user.cert, key: user.key })).status, 200);
  },
  "token-auth-file": async (t) => {
    await using server = await startServer({ "token-auth-file": file("tokens"), "anonymous-auth": "false" });
    t.equal((await server.send("GET /api", undefined, { authorization: "Bearer sesame" })).status, 200);
    t.equal((await server.send("GET /api", undefined, { authorization: "Bearer poppy" })).status, 401);
  },
  "authorization-mode": async (t) => {
    await using server = await startServer({ "authorization-mode": "AlwaysDeny" });
    t.equal((await server.send("GET /api/v1/pods", undefined, {})).status, 403);
    await using rbac = await startServer({ "authorization-mode": "RBAC" });
    t.equal((await rbac.send("GET /api/v1/pods", undefined, {})).status, 403);
    t.equal((await rbac.send("GET /api/v1/pods")).status, 200);
    for (const mode of ["ABAC", "Webhook"]) {
      await t.rejects(startAndClose({ "authorization-mode": mode }), new RegExp(mode), "the mode needs a file");
    }
  },
  "allow-privileged": async (t) => {
    const wanted = pod("root", { container: { securityContext: { privileged: true } } });
    await using strict = await startServer();
    const { status, json } = await strict.send(`POST ${PODS}`, wanted);
    t.equal(status, 422);
    t.match(
      json.message,
      /Pod "root" is invalid: spec.containers\[0\].securityContext.privileged: Forbidden: disallowed by cluster policy/,
    );
    await using lax = await startServer({ "allow-privileged": "true" });
    t.equal((await lax.send(`POST ${PODS}`, wanted)).status, 201);
  },
  "default-not-ready-toleration-seconds": async (t) => {
    await using server = await startServer({ "default-not-ready-toleration-seconds": "7" });
    const { json } = await server.send(`POST ${PODS}`, pod("web"));
    t.same(json.spec.tolerations, [
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 7 },
      { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    ]);
  },
  "default-unreachable-toleration-seconds": async (t) => {
    await using server = await startServer({ "default-unreachable-toleration-seconds": "8" });
    const own = { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" };
    const created = pod("web");
    const { json } = await server.send(`POST ${PODS}`, { ...created, spec: { ...created.spec, tolerations: [own] } });
    t.match(json.spec.tolerations, [own, { key: "node.kubernetes.io/unreachable", tolerationSeconds: 8 }]);
    t.equal(json.spec.tolerations.length, 2);
  },
  "embedded-controllers": async (t) => {
    await using server = await startServer({ "embedded-controllers": "scheduler" });
    await server.send(`POST ${PODS}`, pod("web"));
    await server.until("condition PodScheduled", async () => {
      const { json } = await server.send(`GET ${PODS}/web`);
      return json.status.conditions?.some(({ type }: { type: string }) => type === "PodScheduled") === true;
    });
    await t.rejects(startAndClose({ "embedded-controllers": "gardener" }), /gardener/);
  },
  "api-group-aliases": async (t) => {
    await using server = await startServer({ "api-group-aliases": "" });
    t.equal((await server.send("GET /apis/coordination.svc.io/v1/leases")).status, 200);
    t.equal((await server.send("GET /apis/coordination.k8s.io/v1/leases")).status, 404);
    const { json } = await server.send("GET /api/v1/namespaces/default/services");
    t.same(json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name).sort(), [
      "kubernetes",
      "svc",
    ]);
    await using other = await startServer();
    const { json: alone } = await other.send("GET /api/v1/namespaces/default/services");
    t.same(
      alone.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ["kubernetes"],
    );
  },
  "list-api-group-aliases": async (t) => {
    await using server = await startServer({ "list-api-group-aliases": "true" });
    const { json } = await server.send("GET /apis");
    const names = json.groups.map(({ name }: { name: string }) => name);
    for (const domain of ["svc.io", "k8s.io"]) t.ok(names.includes(`coordination.${domain}`), domain);
    t.throws(() => parseFlags({ "list-api-group-aliases": "true", "api-group-aliases": "" }), /--api-group-aliases/);
  },
};
