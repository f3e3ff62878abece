import t from "tap";
import { listening } from "./address-in-use.ts";

t.test("listening() names the flag for a port that is taken, the outermost where there are several", async (t) => {
  const taken = () => Promise.reject(Object.assign(new Error("in use"), { code: "EADDRINUSE", port: 6443 }));
  const inner = () => listening("--port", taken());
  await t.rejects(inner(), { message: /port 6443: .* with --port$/, code: "EADDRINUSE" });
  await t.rejects(listening("--agent-port", inner()), { message: /port 6443: .* with --agent-port$/ });
  await t.rejects(listening("--port", Promise.reject(new Error("no rights"))), { message: "no rights" });
  t.equal(await listening("--port", Promise.resolve(1)), 1);
});
