import t from "tap";
import { list, map, object, oneOf, optional, pointer, string } from "../define.ts";
import type { ObjectSchema } from "../schema.ts";
import { validate } from "./validate.ts";

const port = object("t/v1.Port", { protocol: optional(1, oneOf("TCP", "UDP")) });
const spec: ObjectSchema = object("t/v1.Spec", {
  ports: optional(1, list(port)),
  modes: optional(2, map(oneOf("A", "B"))),
  free: optional(3, string),
  next: pointer(4, (): ObjectSchema => spec),
});

t.test("validate() reports every string that is not in its enum", async (t) => {
  const errors = validate(spec, {
    ports: [{ protocol: "TCP" }, { protocol: "tcp" }, {}],
    modes: { x: "C" },
    free: "anything",
    next: { ports: [{ protocol: "" }, { protocol: "ICMP" }] },
  });
  t.same(
    errors.map((error) => [error.type, error.field, error.badValue, error.detail]),
    [
      ["FieldValueNotSupported", "ports[1].protocol", "tcp", 'supported values: "TCP", "UDP"'],
      ["FieldValueNotSupported", "modes[x]", "C", 'supported values: "A", "B"'],
      ["FieldValueNotSupported", "next.ports[1].protocol", "ICMP", 'supported values: "TCP", "UDP"'],
    ],
  );
  t.same(validate(spec, {}), []);
  t.same(validate(string, "x"), []);
});
