import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import {
  type AuthorizationDecision,
  authorizerType,
  authorizerValue,
  type CheckAttributes,
  resourceCheckType,
  resourceCheckValue,
} from "./authorizer.ts";

const environment = createEnvironment({ variables: { authorizer: authorizerType }, nameFormats });

function evaluate(
  source: string,
  decision: AuthorizationDecision,
): { readonly checks: readonly CheckAttributes[]; readonly result: unknown } {
  const { program, errors } = compile(source, environment);
  if (program === undefined) throw new Error(errors.map(({ message }) => message).join());
  const checks: CheckAttributes[] = [];
  const authorizer = authorizerValue((attributes) => {
    checks.push(attributes);
    return decision;
  });
  const { value, error } = program.evaluate({ authorizer });
  return { checks, result: error?.message ?? value };
}

const yes: AuthorizationDecision = { allowed: true, reason: "because" };

t.test("authorizer checks the attributes that the expression sets", (t) => {
  t.same(evaluate("authorizer.path('/healthz').check('get').allowed()", yes), {
    checks: [{ path: "/healthz", verb: "get" }],
    result: true,
  });
  const resource = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('x')";
  t.same(evaluate(`${resource}.labelSelector('a=b').check('update').reason()`, yes), {
    checks: [
      {
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        namespace: "n",
        name: "x",
        labelSelector: "a=b",
        verb: "update",
      },
    ],
    result: "because",
  });
  t.same(
    evaluate("authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('get').allowed()", yes).checks,
    [{ serviceAccount: { namespace: "ns", name: "sa" }, group: "", resource: "pods", verb: "get" }],
  );
  t.end();
});

t.test("authorizer distinguishes errors from denials", (t) => {
  const failed: AuthorizationDecision = { allowed: false, reason: "", error: "webhook is unreachable" };
  const check = "authorizer.path('/x').check('get')";
  t.equal(evaluate(`${check}.errored()`, failed).result, true);
  t.equal(evaluate(`${check}.error()`, failed).result, "webhook is unreachable");
  t.equal(evaluate(`${check}.error()`, yes).result, "");
  t.end();
});

t.test("authorizer rejects checks with empty attributes", (t) => {
  t.equal(evaluate("authorizer.path(' ').check('get').allowed()", yes).result, "path must not be empty");
  t.equal(
    evaluate("authorizer.group('').resource('').check('get').allowed()", yes).result,
    "resource must not be empty",
  );
  const account = "authorizer.serviceAccount('Not@valid', 'sa').path('/x').check('get').allowed()";
  t.equal(evaluate(account, yes).result, "Invalid service account namespace");
  t.end();
});

t.test("authorizer.requestResource checks the resource of the request", (t) => {
  const resourceEnvironment = createEnvironment({
    variables: { "authorizer.requestResource": resourceCheckType },
    nameFormats,
  });
  const { program } = compile("authorizer.requestResource.check('delete').allowed()", resourceEnvironment);
  const checks: CheckAttributes[] = [];
  const resource = resourceCheckValue(
    (attributes) => {
      checks.push(attributes);
      return yes;
    },
    { group: "apps", resource: "deployments", namespace: "n" },
  );
  t.equal(program?.evaluate({ "authorizer.requestResource": resource }).value, true);
  t.same(checks, [{ group: "apps", resource: "deployments", namespace: "n", verb: "delete" }]);
  t.end();
});

t.test("authorizer allows two checks within the budget of an expression", (t) => {
  const once = "authorizer.path('/x').check('get').allowed()";
  t.equal(evaluate(`${once} && ${once}`, yes).result, true);
  t.equal(evaluate(`${once} && ${once} && ${once}`, yes).result, "operation cancelled: actual cost limit exceeded");
  t.end();
});
