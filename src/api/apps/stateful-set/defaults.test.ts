import t from "tap";
import { setStatefulSetDefaults } from "./defaults.ts";
import type { StatefulSetUpdateStrategy } from "./schema.ts";

t.test("a rolling update starts at the first pod, and with a gate one pod may be unavailable", async (t) => {
  const defaulted = (isOn: boolean, updateStrategy?: StatefulSetUpdateStrategy) => {
    const spec = { serviceName: "s", selector: {}, template: {}, ...(updateStrategy && { updateStrategy }) };
    return setStatefulSetDefaults({ spec }, { has: () => isOn }).spec?.updateStrategy;
  };
  const type = "RollingUpdate" as const;
  t.strictSame(defaulted(false), { type, rollingUpdate: { partition: 0 } });
  t.strictSame(defaulted(true), { type, rollingUpdate: { maxUnavailable: 1, partition: 0 } });
  const own = { maxUnavailable: "50%", partition: 2 };
  t.strictSame(defaulted(true, { type, rollingUpdate: own }), { type, rollingUpdate: own });
  t.strictSame(defaulted(true, { type }), { type }, "a type alone gets no defaults");
  t.strictSame(defaulted(true, { type: "OnDelete" }), { type: "OnDelete" });
});
