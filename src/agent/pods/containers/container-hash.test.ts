import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import { containerHash } from "./container-hash.ts";

/**
 * What agents that were released have written on running containers. Another value here would make every node restart
 * its containers when its agent is upgraded: never change one.
 */
const recorded: readonly (readonly [Container, string])[] = [
  [{ name: "c", image: "busybox:1" }, "73b9fa5d"],
  [{ name: "c", image: "busybox:2" }, "43e490fe"],
  [{ name: "web", image: "registry.example/shop/web:1.4.2" }, "f922f4c9"],
  [
    {
      name: "web",
      image: "registry.example/shop/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    },
    "b4badb45",
  ],
  [{ name: "init-0" }, "11898118"],
];

t.test("containerHash() returns the value of every earlier version", async (t) => {
  for (const [container, hash] of recorded) t.equal(containerHash(container), hash);
});

t.test(
  "containerHash() ignores fields that can change in place, and fields and defaults of later versions",
  async (t) => {
    const [container, hash] = recorded[0]!;
    const more: Container = {
      ...container,
      imagePullPolicy: "Always",
      terminationMessagePath: "/dev/termination-log",
      env: [{ name: "A", value: "1" }],
      resources: { requests: { cpu: "1" } },
      livenessProbe: { exec: { command: ["true"] } },
    };
    t.equal(containerHash(more), hash);
  },
);
