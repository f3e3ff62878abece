/** The effects of flags for extension servers. */
import { until } from "../../../testing/std/until.ts";
import { startRecordedBackend } from "../../recorded-answers/recorded-backend.ts";
import { type Effect, type Name, pair, type Settings, type startServer as StartServer } from "./support.ts";

const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME = "v1.x.example.com";

export function aggregationEffects(startServer: typeof StartServer): Partial<Record<Name, Effect>> {
  return {
    "aggregator-reject-forwarding-redirect": async (t) => {
      await using backend = await startRecordedBackend(pair);
      const { port } = backend;
      const statusOf = async (settings: Settings) => {
        await using server = await startServer(settings);
        await server.send("POST /api/v1/namespaces/default/services", {
          metadata: { name: "s" },
          spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] },
        });
        const service = { namespace: "default", name: "s", port };
        const priorities = { groupPriorityMinimum: 1, versionPriority: 1 };
        const spec = { group: "x.example.com", version: "v1", service, insecureSkipTLSVerify: true, ...priorities };
        await server.send(`POST ${API_SERVICES}`, { metadata: { name: NAME }, spec });
        const isAvailable = async (): Promise<boolean> => {
          const { conditions } = (await server.send(`GET ${API_SERVICES}/${NAME}`)).json.status;
          return conditions?.[0]?.status === "True";
        };
        await until("an available API service", isAvailable, {
          wait: async () => {
            await new Promise((resolve) => setImmediate(resolve));
            await server.clock.advance(10);
          },
        });
        return (await server.send("GET /apis/x.example.com/v1/move")).status;
      };
      t.equal(await statusOf({}), 502);
      t.equal(await statusOf({ "aggregator-reject-forwarding-redirect": "false" }), 302);
    },
  };
}
