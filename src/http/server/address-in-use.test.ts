import t from "tap";
import { explainAddressInUse } from "./address-in-use.ts";

t.test("explainAddressInUse() adds the flag to EADDRINUSE; the outermost call wins", async (t) => {
  const taken = () => Promise.reject(Object.assign(new Error("in use"), { code: "EADDRINUSE", port: 6443 }));
  const inner = () => explainAddressInUse("--port", taken());
  await t.rejects(inner(), { message: /port 6443: .* with --port$/, code: "EADDRINUSE" });
  await t.rejects(explainAddressInUse("--agent-port", inner()), { message: /port 6443: .* with --agent-port$/ });
  await t.rejects(explainAddressInUse("--port", Promise.reject(new Error("no rights"))), { message: "no rights" });
  t.equal(await explainAddressInUse("--port", Promise.resolve(1)), 1);
});
