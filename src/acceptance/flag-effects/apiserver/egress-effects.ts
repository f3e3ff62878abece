/** The effect of the flag of egress proxies. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectProxy } from "../../../testing/apiserver/egress-proxies.ts";
import { type Effect, type Name, PODS, pod, type startServer } from "./support.ts";

export function egressEffects(start: typeof startServer): Partial<Record<Name, Effect>> {
  return {
    "egress-selector-config-file": async (t) => {
      const destination = createServer((_, response) => response.end("through the proxy"));
      destination.listen(0, "127.0.0.1");
      await once(destination, "listening");
      const { port } = destination.address() as AddressInfo;
      t.teardown(() => destination.close());
      await using proxy = await ConnectProxy.start({ resolve: () => `127.0.0.1:${port}` });
      const folder = mkdtempSync(join(tmpdir(), "svc-egress-"));
      t.teardown(() => rmSync(folder, { recursive: true }));
      const path = join(folder, "egress.json");
      const connection = { proxyProtocol: "HTTPConnect", transport: { tcp: { url: proxy.url } } };
      const egressSelections = [{ name: "cluster", connection }];
      writeFileSync(
        path,
        JSON.stringify({
          apiVersion: "apiserver.svc.io/v1beta1",
          kind: "EgressSelectorConfiguration",
          egressSelections,
        }),
      );
      await using server = await start({ "egress-selector-config-file": path });
      await server.send(`POST ${PODS}`, pod("a"));
      const status = { podIP: "10.255.0.9", podIPs: [{ ip: "10.255.0.9" }] };
      await server.send(`PUT ${PODS}/a/status`, { ...(await server.send(`GET ${PODS}/a`)).json, status });
      const answer = await server.send(`GET ${PODS}/a:8080/proxy/`);
      t.same([answer.status, answer.json], [200, "through the proxy"]);
      t.same(proxy.targets, ["10.255.0.9:8080"]);
    },
  };
}
