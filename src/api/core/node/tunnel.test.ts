import t from "tap";
import { TUNNEL_CONDITION, TUNNEL_DISABLED, tunnelPath, usesTunnel } from "./tunnel.ts";

t.test("usesTunnel() is true from the agent's condition on, until the agent runs without a tunnel", async (t) => {
  const condition = (type: string, status: "True" | "False", reason: string) => ({ type, status, reason });
  const ready = condition("Ready", "True", "KubeletReady");
  const cases = [
    [[], false],
    [[ready], false],
    [[ready, condition(TUNNEL_CONDITION, "True", "TunnelOpen")], true],
    [[condition(TUNNEL_CONDITION, "False", "TunnelClosed")], true],
    [[condition(TUNNEL_CONDITION, "False", TUNNEL_DISABLED)], false],
  ] as const;
  for (const [conditions, uses] of cases) t.equal(usesTunnel({ status: { conditions } }), uses);
  t.equal(usesTunnel({}), false);
});

t.test("tunnelPath() addresses one node, whatever its name", async (t) => {
  t.equal(tunnelPath("n1"), "/api/v1/nodes/n1/tunnel");
  t.equal(tunnelPath("../x"), "/api/v1/nodes/..%2Fx/tunnel");
});
