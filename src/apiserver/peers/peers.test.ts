/** API servers of two releases, as it were: the second serves versions that the first does not. */
import t from "tap";
import { startPeerServers } from "../../testing/aggregation/peer-servers.ts";
import { until } from "../../testing/std/until.ts";
import { createDefaultConfig } from "../config/default-config.ts";

t.setTimeout(120_000);

const { apis } = createDefaultConfig({});
const INTERNAL = { "internal.apiserver.k8s.io/v1alpha1": "true" };
const CIDRS = "/apis/networking.k8s.io/v1beta1/servicecidrs";
const CONNECTIONS = 16;
const VERSIONS = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";

t.test("requests for a version that this server does not serve go to one that does", async (t) => {
  await using peers = await startPeerServers([
    { apis: { ...apis, runtimeConfig: INTERNAL } },
    { apis: { ...apis, runtimeConfig: { ...INTERNAL, "networking.k8s.io/v1beta1": "true" } } },
  ]);
  const { send } = peers;
  const list = await until("a forwarded list", async () => {
    const response = await send(0, `GET ${CIDRS}`);
    return response.status === 200 ? JSON.parse(response.text) : undefined;
  });
  t.match(list, { kind: "ServiceCIDRList", apiVersion: "networking.k8s.io/v1beta1" });
  const body = { metadata: { name: "more" }, spec: { cidrs: ["10.9.0.0/24"] } };
  t.equal((await send(0, `POST ${CIDRS}?fieldManager=me`, { body })).status, 201);
  t.match(JSON.parse((await send(0, "GET /apis/networking.k8s.io/v1/servicecidrs/more")).text), {
    metadata: { managedFields: [{ manager: "me" }] },
    spec: { cidrs: ["10.9.0.0/24"] },
  });
  const headers = { "x-kubernetes-peer-proxied": "true" };
  t.equal((await send(0, `GET ${CIDRS}`, { headers })).status, 404, "a request is forwarded once");
  t.equal((await send(0, "GET /apis/networking.k8s.io/v1beta1/nothing")).status, 404);
  t.match((await send(0, "GET /metrics")).text, /apiserver_rerouted_request_total\{code="200"\} [1-9]/);

  const version = JSON.parse((await send(0, `GET ${VERSIONS}/networking.k8s.io.servicecidrs`)).text);
  const { storageVersions, commonEncodingVersion, conditions } = version.status;
  t.equal(commonEncodingVersion, "networking.k8s.io/v1beta1", "Kubernetes 1.33 stores this version");
  t.same(storageVersions[0].decodableVersions, ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"]);
  t.match(conditions, [{ type: "AllEncodingVersionsEqual", status: "True", reason: "CommonEncodingVersionSet" }]);
  const served = storageVersions.map((each: { servedVersions: readonly string[] }) => each.servedVersions);
  t.same(served, [["networking.k8s.io/v1"], ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"]]);
  t.match(JSON.parse((await send(0, `GET ${VERSIONS}/core.pods`)).text).status, { commonEncodingVersion: "v1" });

  await peers.servers[1]?.close();
  const gone = await send(0, `GET ${CIDRS}`);
  t.equal(gone.status, 503);
  t.match(gone.text, /Error getting ip and port info of the remote server while proxying/);
});

t.test("all threads of a server forward requests; the main one publishes for them", async (t) => {
  await using peers = await startPeerServers([
    { apis: { ...apis, runtimeConfig: INTERNAL }, workers: 2 },
    { apis: { ...apis, runtimeConfig: { ...INTERNAL, "networking.k8s.io/v1beta1": "true" } } },
  ]);
  // A connection each, so that both threads have some.
  const sendAll = (line: string) => Promise.all(Array.from({ length: CONNECTIONS }, () => peers.send(0, line)));
  await until("forwarded lists", async () => (await sendAll(`GET ${CIDRS}`)).every(({ status }) => status === 200));
  for (const { text } of await sendAll(`GET ${VERSIONS}/core.pods`)) {
    const { storageVersions } = JSON.parse(text).status;
    t.equal(storageVersions.length, 2, "one for each server, not for each thread");
  }
});
