import t from "tap";
import { createMemoryStore } from "../storage/memory.ts";
import { configWithGates, startTestServer, type TestServer } from "../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { IGNORE_READ_ERROR as OPTION } from "./delete-unreadable.ts";

const GATE = "AllowUnsafeMalformedObjectDeletion";
const SECRETS = "/api/v1/namespaces/default/secrets";
const ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const KEY = "/registry/secrets/default/lost";

/** A server whose store has a secret that is encrypted with an unknown key, and one that is no object. */
async function start(enabled: boolean): Promise<TestServer> {
  const store = createMemoryStore({ clock: new FakeClock() });
  await store.create(KEY, Buffer.from("k8s:enc:aesgcm:v1:k1:ciphertext"));
  await store.create("/registry/secrets/default/odd", Buffer.from("svc\0\xff\xff", "latin1"));
  const config = { ...configWithGates({ [GATE]: enabled }), authorizationModes: ["RBAC"] } as const;
  return await startTestServer(config, { store });
}

t.test("an object that cannot be read is deleted by those who may ignore that", async (t) => {
  await using server = await start(true);
  const { json: failed } = await server.send(`GET ${SECRETS}/lost`);
  t.match(failed, { code: 500, reason: "InternalError" });
  t.match(
    failed.message,
    `Internal error occurred: StorageError: corrupt object, Code: 7, Key: ${KEY}, ResourceVersion: 0, ` +
      "AdditionalErrorMsg: data from the storage is not transformable revision=0: ",
  );
  t.equal((await server.send(`DELETE ${SECRETS}/lost`)).status, 500, "not without the option");
  const role = { metadata: { name: "croc" }, rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["delete"] }] };
  await server.send(`POST ${ROLES}/roles`, { body: role });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "croc" };
  const subjects = [{ apiGroup: roleRef.apiGroup, kind: "User", name: "croc" }];
  await server.send(`POST ${ROLES}/rolebindings`, { body: { metadata: { name: "croc" }, roleRef, subjects } });
  await server.clock.advance(100);
  const { json: refused } = await server.send(`DELETE ${SECRETS}/lost?${OPTION}=true`, { user: "croc" });
  t.match(refused, { code: 403, reason: "Forbidden" });
  t.match(
    refused.message,
    'secrets "lost" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: ',
  );
  const { json: deleted } = await server.send(`DELETE ${SECRETS}/lost`, { body: { [OPTION]: true } });
  t.match(deleted, { kind: "Status", status: "Success", code: 200, details: { name: "lost", kind: "Secret" } });
  t.equal((await server.send(`GET ${SECRETS}/lost`)).status, 404);
  t.equal((await server.send(`DELETE ${SECRETS}/odd?${OPTION}=true`)).status, 200, "a value that is no object");
  await server.clock.advance(2000);
  t.same((await server.send(`GET ${SECRETS}`)).json.items, []);
});

t.test("a list names the objects that cannot be read", async (t) => {
  await using server = await start(true);
  const { json } = await server.send(`GET ${SECRETS}`);
  t.match(json, {
    code: 500,
    reason: "StorageReadError",
    message: "failed to read one or more secrets from the storage",
    details: { name: "list", kind: "secrets" },
  });
  const keys = json.details.causes.map(({ reason, field }: Record<string, string>) => `${reason} ${field}`);
  t.match(json.details.causes[0].message, /revision=0: (?!unable to transform key)/);
  t.same(keys, [`UnexpectedServerResponse ${KEY}`, "UnexpectedServerResponse /registry/secrets/default/odd"]);
});

t.test("the option is rejected for objects that can be read, for collections, and beside other options", async (t) => {
  await using server = await start(true);
  await server.send(`GET ${SECRETS}/lost`);
  await server.send(`POST ${SECRETS}`, { body: { metadata: { name: "fine" } } });
  const messageOf = async (line: string, body?: object): Promise<string> =>
    (await server.send(line, body && { body })).json.message;
  const exclusive = `${OPTION}: Invalid value: true: is exclusively used to delete corrupt object(s), try again by`;
  t.match(await messageOf(`DELETE ${SECRETS}/fine?${OPTION}=true`), `secrets "fine" is invalid: ${exclusive}`);
  t.match(await messageOf(`DELETE ${SECRETS}/none?${OPTION}=true`), exclusive);
  t.match(await messageOf(`DELETE ${SECRETS}?${OPTION}=true`), `${OPTION}: Invalid value: true: is not allowed with`);
  const others = { dryRun: ["All"], gracePeriodSeconds: 0, preconditions: { uid: "x" } };
  const text = await messageOf(`DELETE ${SECRETS}/lost`, { [OPTION]: true, ...others });
  for (const name of Object.keys(others)) t.match(text, `cannot be set together with .${name}`);
});

t.test("without the gate the option is ignored", async (t) => {
  await using server = await start(false);
  const { json } = await server.send(`DELETE ${SECRETS}/lost?${OPTION}=true`);
  t.match(json, { code: 500, reason: "InternalError" });
  t.notMatch(json.message, /StorageError/);
  await server.send(`POST ${SECRETS}`, { body: { metadata: { name: "fine" } } });
  t.equal((await server.send(`DELETE ${SECRETS}/fine?${OPTION}=true`)).status, 200);
});
