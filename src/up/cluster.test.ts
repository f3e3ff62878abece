import t from "tap";
import { loadAgentConfig } from "../agent/config/load.ts";
import { parseFlags } from "../flags/parse.ts";
import { agentConfig } from "./cluster.ts";
import { upFlags } from "./flags.ts";
import { upOptions } from "./options.ts";

t.test("agentConfig() shows the effective settings of the agent at /configz", async (t) => {
  const surroundings = { hostname: "edge-1", interfaces: {}, routes: undefined };
  const flags = ["--node-ip=192.0.2.2", "--agent-port=20250", "--cluster-domain=shop.example"];
  const config = agentConfig(upOptions(parseFlags(upFlags, flags), surroundings), { agentCaFile: "/ca" }, "unix:///r");
  const { server, pods, runtime, configz } = config;
  t.match(configz, {
    port: 20250,
    readOnlyPort: server.readOnlyPort,
    healthzPort: server.healthzPort,
    clusterDNS: pods.clusterDns,
    clusterDomain: "shop.example",
    containerRuntimeEndpoint: runtime.endpoint,
    failSwapOn: runtime.failSwapOn,
    authentication: { anonymous: { enabled: server.anonymousAuth }, x509: { clientCAFile: server.clientCaFile } },
    authorization: { mode: server.authorization.mode, webhook: { cacheAuthorizedTTL: "5m0s" } },
    maxPods: 110,
  });
  const known = Object.keys(loadAgentConfig([], {}).config);
  const named = ["clusterDNS", "clusterDomain", "containerRuntimeEndpoint", "imageServiceEndpoint", "failCgroupV1"];
  t.same(
    Object.keys(configz).filter((name) => !known.includes(name) && !named.includes(name)),
    [],
  );
});
