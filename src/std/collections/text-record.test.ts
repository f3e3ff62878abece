import t from "tap";
import { createTextRecord } from "./text-record.ts";

t.test(
  "createTextRecord() returns an object without members, own or inherited, that is open for any name",
  async (t) => {
    const record = createTextRecord();
    for (const name of ["constructor", "toString", "__proto__"]) {
      t.notOk(name in record, name);
      record[name] = "text";
      t.equal(record[name], "text", name);
    }
    t.same(Object.keys(record), ["constructor", "toString", "__proto__"]);
  },
);
