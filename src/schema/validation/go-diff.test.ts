import t from "tap";
import {
  boolean,
  int64,
  intOrString,
  list,
  map,
  named,
  object,
  optional,
  pointer,
  quantity,
  string,
} from "../define.ts";
import { formatGoDiff } from "./go-diff.ts";

const probe = object("core/v1.Probe", { port: optional(1, intOrString), delay: optional(2, int64) });
const container = object("core/v1.Container", {
  name: optional(1, string),
  image: optional(2, string),
  command: optional(3, list(string)),
  limits: optional(4, named("v1.ResourceList", map(quantity))),
  livenessProbe: pointer(5, probe),
  tty: optional(6, boolean),
  imagePullPolicy: optional(7, named("v1.PullPolicy", string)),
});
const spec = object("core/v1.Spec", {
  containers: optional(1, list(container)),
  grace: pointer(2, int64),
  dnsPolicy: optional(3, string),
  hostIP: optional(4, string),
  nodeSelector: optional(5, map(string)),
  seLinux: optional(6, string),
});

const diff = (before: object, after: object): string => formatGoDiff(spec, "core.Spec", before, after);

t.test("formatGoDiff() shows changed fields with two equal ones around them", (t) => {
  const before = { containers: [{ name: "a", image: "i" }], grace: 30, dnsPolicy: "Default" };
  t.equal(diff(before, before), "");
  t.equal(
    diff(before, { ...before, hostIP: "1.1.1.1" }),
    [
      "  core.Spec{",
      "  \t... // 1 identical field",
      "  \tGrace: &30,",
      '  \tDNSPolicy: "Default",',
      '- \tHostIP: "",',
      '+ \tHostIP: "1.1.1.1",',
      "  \tNodeSelector: nil,",
      '  \tSELinux: "",',
      "  }",
      "",
    ].join("\n"),
  );
  t.end();
});

t.test("formatGoDiff() descends into objects, lists and maps", (t) => {
  const a = { name: "a", image: "i", command: ["x"], limits: { cpu: "1", memory: "2" } };
  const next = { ...a, tty: true, command: ["x", "y"], limits: { cpu: "2", memory: "2" } };
  t.equal(
    diff({ containers: [a] }, { containers: [next] }),
    [
      "  core.Spec{",
      "  \tContainers: []core.Container{",
      "  \t\tcore.Container{",
      '  \t\t\tName: "a",',
      '  \t\t\tImage: "i",',
      "  \t\t\tCommand: []string{",
      '  \t\t\t\t"x",',
      '+ \t\t\t\t"y",',
      "  \t\t\t},",
      "  \t\t\tLimits: core.ResourceList{",
      '- \t\t\t\t"cpu": s"1",',
      '+ \t\t\t\t"cpu": s"2",',
      '  \t\t\t\t"memory": s"2",',
      "  \t\t\t},",
      "  \t\t\tLivenessProbe: nil,",
      "- \t\t\tTTY: false,",
      "+ \t\t\tTTY: true,",
      '  \t\t\tImagePullPolicy: "",',
      "  \t\t},",
      "  \t},",
      "  \tGrace: nil,",
      '  \tDNSPolicy: "",',
      "  \t... // 3 identical fields",
      "  }",
      "",
    ].join("\n"),
  );
  const added = diff({ containers: [a] }, { containers: [a, { name: "b", livenessProbe: { port: 80, delay: 1 } }] });
  t.match(added, '+ \t\tcore.Container{Name: "b", LivenessProbe: &core.Probe{Port: 80, Delay: 1}},\n');
  const selector = { k: "v" };
  t.match(diff({ grace: 1 }, { nodeSelector: selector }), '+ \tNodeSelector: map[string]string{"k": "v"},\n');
  const inherited = diff({ nodeSelector: { k: "v" } }, { nodeSelector: { k: "v", toString: "x" } });
  t.match(inherited, '+ \t\t"toString": "x",\n');
  t.notMatch(inherited, /^-/m);
  t.match(diff({ grace: 1 }, { nodeSelector: selector }), "- \tGrace: &1,\n+ \tGrace: nil,\n");
  t.end();
});

t.test("formatGoDiff() is bounded", (t) => {
  const many = Array.from({ length: 10_000 }, (_, i) => ({ name: `c${i}`, image: "x".repeat(1000) }));
  t.ok(diff({ containers: [] }, { containers: many }).length < 10_000);
  t.ok(diff({ containers: many }, { containers: many.map((item) => ({ ...item, image: "y" })) }).length < 10_000);
  t.ok(diff({ hostIP: "x".repeat(1e6) }, {}).length < 10_000);
  const unread = {
    get name(): string {
      throw new Error("formatted, though it is not shown");
    },
  };
  const long = { containers: [...many.slice(0, 100), unread] };
  t.match(diff({}, long), /Image: "x+\.\.\.\n/, "items that are not shown are not formatted");
  t.end();
});
