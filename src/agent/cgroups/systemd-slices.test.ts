import t from "tap";
import { SystemdSlices, toLimitProperties, toSlicePath } from "./systemd-slices.ts";

t.test("toSlicePath() returns systemd's path of a slice", async (t) => {
  t.equal(toSlicePath("kubepods.slice"), "/kubepods.slice");
  t.equal(
    toSlicePath("kubepods-burstable-podu_1.slice"),
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice",
  );
});

t.test("toLimitProperties() converts limits to systemd's properties", async (t) => {
  const limits = { cpuShares: 512, cpuQuotaUs: 12_345, cpuPeriodUs: 100_000, memoryBytes: 4096, pids: 7 };
  t.same(toLimitProperties(limits, true), [
    ["MemoryMax", "t", "4096"],
    ["CPUWeight", "t", "20"],
    ["CPUQuotaPeriodUSec", "t", "100000"],
    ["CPUQuotaPerSecUSec", "t", "130000"],
    ["TasksMax", "t", "7"],
  ]);
  t.same(toLimitProperties({ cpuShares: 512, memoryBytes: null, cpuQuotaUs: null }, false), [
    ["MemoryLimit", "t", "18446744073709551615"],
    ["CPUShares", "t", "512"],
    ["CPUQuotaPerSecUSec", "t", "18446744073709551615"],
  ]);
  t.same(toLimitProperties({ memoryMinBytes: 4096 }, true), [["MemoryMin", "t", "4096"]]);
  t.same(toLimitProperties({ memoryMinBytes: 4096 }, false), []);
  t.same(toLimitProperties({}, true), []);
});

t.test("SystemdSlices.apply() creates a slice below its parent, or changes an existing one", async (t) => {
  const calls: string[] = [];
  let exists = false;
  const slices = new SystemdSlices(true, async (method, signature, args) => {
    calls.push(`${method} ${signature} ${args.join(" ")}`);
    if (method === "StartTransientUnit" && exists) throw new Error("Unit a-b.slice already exists.");
    if (args.includes("9")) throw new Error("Access denied");
  });
  await slices.apply("a-b.slice", { pids: 7 });
  exists = true;
  await slices.apply("a-b.slice", { pids: 8 });
  await slices.remove("a-b.slice");
  t.match(calls, [
    /^StartTransientUnit ssa\(sv\)a\(sa\(sv\)\) a-b\.slice replace 8 .* Wants as 1 a\.slice .* TasksMax t 7 0$/,
    /^StartTransientUnit/,
    /^SetUnitProperties sba\(sv\) a-b\.slice true 1 TasksMax t 8$/,
    /^StopUnit ss a-b\.slice replace$/,
  ]);
  await t.rejects(slices.apply("a.slice", { pids: 9 }), /Access denied/);
});
