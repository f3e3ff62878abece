import { existsSync } from "node:fs";
import t from "tap";
import { invokeCommand } from "../../flags/commands.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { openStore } from "../../storage/open.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { runWebhooksCommand } from "./webhooks.ts";
import { webhooksProgram } from "./webhooks-flags.ts";

const REGISTRATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const pod = {
  metadata: { name: "guard", labels: { app: "guard" } },
  spec: { containers: [{ name: "c", image: "i" }] },
};

/** Its webhook applies to all pods, its own included, and none runs. */
const configuration = {
  metadata: { name: "guard" },
  webhooks: [
    {
      name: "guard.example.com",
      clientConfig: { service: { namespace: "default", name: "guard" } },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    },
  ],
};

/** The output of `svc webhooks` with these arguments. */
async function answer(argv: readonly string[]): Promise<string> {
  const invocation = await invokeCommand(webhooksProgram, argv);
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return await runWebhooksCommand(invocation);
}

const serve = async (url: string) => {
  const store = await openStore({ urls: [url], clock: systemClock, log: silentLogger, compactionIntervalMs: 0 });
  const lines: string[] = [];
  const log = { ...silentLogger, error: (text: string) => lines.push(text), child: () => log };
  const server = await startTestServer({}, { store, log: log as never });
  return {
    server,
    lines,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
};

t.test("svc webhooks suspends a webhook that rejects its own pods", async (t) => {
  const url = `level://${t.testdir()}`;
  const at = `--kvstore-servers=${url}`;
  {
    await using running = await serve(url);
    const { server, lines } = running;
    const service = { metadata: { name: "guard" }, spec: { selector: { app: "guard" }, ports: [{ port: 443 }] } };
    await server.send("POST /api/v1/namespaces/default/services", { body: service });
    await server.send(`POST ${REGISTRATION}`, { body: configuration });
    const refused = await server.send("POST /api/v1/namespaces/default/pods", { body: pod });
    t.match(refused.json, { code: 500, message: /failed calling webhook "guard.example.com"/ });
    let events: readonly { readonly message: string }[] = [];
    for (let tries = 0; tries < 200 && events.length === 0; tries++) {
      await new Promise(setImmediate);
      events = (await server.send("GET /api/v1/namespaces/default/events?fieldSelector=reason=WebhookDeadlock")).json
        .items;
    }
    t.match(events, [
      {
        type: "Warning",
        involvedObject: { kind: "ValidatingWebhookConfiguration", name: "guard" },
        message: /kubectl annotate .* guard webhooks.svc.io\/suspended=.* svc webhooks suspend guard/,
      },
    ]);
    t.match(lines, ["A webhook rejects the pods of its own service"]);
    await t.rejects(answer(["list", at]), { message: /it is in use: stop the API server/ });
  }
  t.match(await answer(["suspend", "guard", at]), /is suspended\..*kubectl annotate/s);
  t.match(await answer(["list", at]), /guard \(guard.example.com\): suspended: all/);
  {
    await using running = await serve(url);
    t.equal((await running.server.send("POST /api/v1/namespaces/default/pods", { body: pod })).status, 201);
    const patch = { metadata: { annotations: { "webhooks.svc.io/suspended": null } } };
    const headers = { "content-type": "application/merge-patch+json" };
    await running.server.send(`PATCH ${REGISTRATION}/guard`, { body: patch, headers });
    const again = { ...pod, metadata: { ...pod.metadata, name: "other" } };
    t.equal((await running.server.send("POST /api/v1/namespaces/default/pods", { body: again })).status, 500);
  }
});

t.test("svc webhooks reports what does not exist", async (t) => {
  const at = `--kvstore-servers=level://${t.testdir()}`;
  t.match(await answer(["list", at]), "There are no admission webhooks.");
  await t.rejects(answer(["suspend", "none", at]), { message: /there is no configuration named none/ });
  const nowhere = `${t.testdirName}/nowhere`;
  const missing = ["suspend", "none", `--kvstore-servers=level://${nowhere}`];
  await t.rejects(answer(missing), { message: /nowhere: there is no such directory/ });
  t.notOk(existsSync(nowhere), "it is not created");
  await t.rejects(answer(["list", "--kvstore-servers=memory://"]), { message: /must be level:\/\/\/PATH/ });
  await t.rejects(answer(["stop", at]), { message: /unknown command "stop"/ });
});
