import t from "tap";
import type { Job } from "./schema.ts";
import { validateJobStatus } from "./status-validation.ts";

const job = (...types: readonly string[]): Job => ({
  metadata: { name: "j" },
  spec: { template: { spec: { containers: [] } } },
  status: { conditions: types.map((type) => ({ type, status: "True" })) } as Job["status"],
});

t.test("a job that meets its success criteria has neither failed nor will it fail", async (t) => {
  const errors = (...types: readonly string[]) => {
    const object = job(...types);
    return validateJobStatus(object, object).map(({ detail }) => detail);
  };
  t.same(errors("SuccessCriteriaMet"), []);
  t.same(errors("Failed", "SuccessCriteriaMet"), ["cannot set SuccessCriteriaMet=True and Failed=true conditions"]);
  t.same(errors("FailureTarget", "SuccessCriteriaMet"), [
    "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
  ]);
});
