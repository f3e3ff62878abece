import t from "tap";
import { invalidField, renderFieldError, requiredField } from "../schema/validation/field-error.ts";
import { alreadyExists, invalid, StatusError } from "./status.ts";

const LONG = "\u0001".repeat(3_000_000);
const subject = { group: "", resource: "configmaps", name: "a" };

t.test("a StatusError shows the start of long texts of a request", (t) => {
  const errors = [
    invalid(subject, [requiredField(`data[${LONG}]`)], renderFieldError),
    invalid(subject, [invalidField(`data[${LONG}]`, LONG, LONG)], renderFieldError),
    alreadyExists({ ...subject, name: LONG }),
    new StatusError(400, "BadRequest", LONG),
  ];
  for (const { status, message } of errors) {
    t.ok(JSON.stringify(status).length < 4_000_000, `${status.reason}`);
    t.equal(status.message, message);
    t.ok(message.length < 300_000, `${status.reason}`);
  }
  t.end();
});
