import t from "tap";
import { type Logger, silentLogger } from "../../std/log/logger.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";

const path = "/apis/scheduling.k8s.io/v1/priorityclasses";

function priorityClass(name: string, more: object = {}): object {
  return { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value: 10, ...more };
}

t.test("a second default priority class gets 403, by create and by patch", async (t) => {
  await using server = await startTestServer();
  const create = (name: string, more?: object) => server.send(`POST ${path}`, { body: priorityClass(name, more) });
  t.equal((await create("first", { globalDefault: true })).status, 201);
  const second = await create("second", { globalDefault: true });
  t.match(second.json, {
    code: 403,
    message:
      'priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass first is already marked as default. Only one default can exist',
  });
  t.equal((await create("second")).status, 201);
  const headers = { "content-type": "application/merge-patch+json" };
  const patch = (name: string) => server.send(`PATCH ${path}/${name}`, { headers, body: { globalDefault: true } });
  t.equal((await patch("second")).status, 403);
  t.equal((await patch("first")).status, 200, "the default may be patched");
});

t.test("the two system priority classes exist and cannot be deleted", async (t) => {
  await using server = await startTestServer();
  const found = (await server.send(`GET ${path}`)).json.items.map(({ metadata, value }: never) => [metadata, value]);
  t.match(found, [
    [{ name: "system-cluster-critical" }, 2_000_000_000],
    [{ name: "system-node-critical" }, 2_000_001_000],
  ]);
  t.match((await server.send(`DELETE ${path}/system-node-critical`)).json, {
    code: 403,
    message: /this is a system priority class and cannot be deleted$/,
  });
});

t.test("createAdmissionChain() warns about authorization mode Node without the plugin NodeRestriction", async (t) => {
  const warned: string[] = [];
  const log: Logger = { ...silentLogger, child: () => log, warn: (text) => void warned.push(text) };
  const start = async (modes: readonly string[], enabled: readonly string[]): Promise<boolean> => {
    const admission = { ...defaultConfig.admission, enabled };
    await using _server = await startTestServer({ authorizationModes: modes, admission }, { log });
    return warned.splice(0).some((text) => /^Nodes may modify objects of other nodes/.test(text));
  };
  t.same(
    [await start(["Node", "RBAC"], []), await start(["Node"], ["NodeRestriction"]), await start(["RBAC"], [])],
    [true, false, false],
  );
});
