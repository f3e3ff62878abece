import t from "tap";
import type { PodSpec } from "./schema.ts";
import { podSpecWarnings } from "./warnings.ts";

const container = { name: "a", image: "web:1" };

function warnings(spec: Partial<PodSpec>): readonly string[] {
  return podSpecWarnings({ containers: [container], ...spec }, "spec");
}

t.test("podSpecWarnings() reports duplicate and overlapping ports", async (t) => {
  const ports = (...entries: readonly (readonly [number, number?, string?])[]) =>
    entries.map(([containerPort, hostPort, hostIP]) => ({
      containerPort,
      ...(hostPort === undefined ? {} : { hostPort }),
      ...(hostIP === undefined ? {} : { hostIP }),
    }));
  const at = "spec.containers[0].ports[1]";
  const first = "spec.containers[0].ports[0]";
  const of = (...entries: readonly (readonly [number, number?, string?])[]) =>
    warnings({ containers: [{ ...container, ports: ports(...entries) }] });
  t.same(of([80], [81]), []);
  t.same(of([80], [80]), [`${at}: duplicate port definition with ${first}`]);
  t.same(of([80], [80, 8080]), [`${at}: overlapping port definition with ${first}`]);
  t.same(of([80, 8080], [80, 8080, "10.0.0.1"]), [`${at}: dangerously ambiguous port definition with ${first}`]);
});

t.test(
  "podSpecWarnings() reports as many overlaps of thousands of ports, paths and sources as a response can have",
  async (t) => {
    const many = <T>(count: number, make: (i: number) => T): readonly T[] =>
      Array.from({ length: count }, (_, i) => make(i));
    const items = many(400, (i) => ({ key: "k", path: `${"p".repeat(100)}${i % 3}` }));
    const files = many(2000, () => ({ key: "k", path: "p" }));
    const specs: readonly Partial<PodSpec>[] = [
      { containers: [{ ...container, ports: many(20_000, () => ({ containerPort: 1 })) }] },
      { containers: many(8000, (i) => ({ name: `c${i}`, image: "i", ports: [{ containerPort: 1 }] })) },
      {
        containers: [{ ...container, ports: many(20_000, (i) => ({ containerPort: 1, hostPort: 1 + (i % 65_535) })) }],
      },
      {
        containers: [
          { ...container, ports: many(10_000, (i) => ({ containerPort: 1, hostPort: 1, hostIP: `ip${i}` })) },
        ],
      },
      { volumes: many(100, (i) => ({ name: `v${i}`, configMap: { items } })) },
      {
        volumes: [
          {
            name: "v",
            projected: { sources: [{ configMap: { items: files } }, ...many(20_000, () => ({ secret: {} }))] },
          },
        ],
      },
    ];
    for (const spec of specs) {
      const began = process.cpuUsage();
      const length = warnings(spec).join("").length;
      const { user } = process.cpuUsage(began);
      t.ok(length < 16_384, `${length} characters`);
      // All pairs take minutes, or more memory than there is.
      t.ok(user < 5_000_000, `${user} µs`);
    }
  },
);

t.test("podSpecWarnings() reports variables that hide earlier ones, unless they refer to them", async (t) => {
  const of = (value: string) =>
    warnings({
      containers: [
        {
          ...container,
          env: [
            { name: "A", value: "1" },
            { name: "A", value },
          ],
        },
      ],
    });
  t.same(of("$(A)/2"), []);
  t.match(of("2"), [/^spec.containers\[0\].env\[1\]: hides previous definition of "A"/]);
  t.equal(of("$(A)").length, 1);
});

t.test("podSpecWarnings() reports overlapping paths of volume files", async (t) => {
  const items = [
    { key: "a", path: "dir" },
    { key: "b", path: "dir/file" },
  ];
  t.same(warnings({ volumes: [{ name: "v", configMap: { name: "c", items } }] }), [
    'volume "v" (ConfigMap "c"): overlapping paths: "dir/file" with "dir"',
  ]);
  t.same(warnings({ volumes: [{ name: "v", projected: { sources: [{}] } }] }), [
    'volume "v" (Projected) has no sources provided',
  ]);
});

t.test("podSpecWarnings() reports deprecated fields and fields without effect", async (t) => {
  t.match(warnings({ nodeSelector: { "beta.kubernetes.io/os": "linux" } }), [/use "kubernetes.io\/os" instead$/]);
  t.match(warnings({ volumes: [{ name: "v", rbd: { monitors: ["m"], image: "i" } }] }), [/non-functional in v1.31\+$/]);
  t.match(warnings({ hostAliases: [{ ip: "010.0.0.1" }] }), [/non-standard IP address/]);
  t.match(warnings({ imagePullSecrets: [{ name: "a" }, { name: "a" }, {}] }), [
    /duplicate name "a"$/,
    /invalid empty name ""$/,
  ]);
  t.match(warnings({ overhead: { memory: "100m" } }), [/fractional byte value "100m" is invalid/]);
});
