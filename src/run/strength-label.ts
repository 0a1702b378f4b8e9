// run/strength-label.ts: one line that names the isolation in force, and never claims more.
import { hostAndPort } from '../protocol/host-name.ts';
import { limitsInForce } from '../sandbox/watch/limits.ts';
import { shortId } from '../sandbox/spec/image.ts';
import type { RunPlan } from './run-plan.ts';

export function describeStrength(plan: RunPlan): string {
  const limits = limitsInForce(plan.config.limits, plan.host.limitHost);
  const soft = limits.filter(
    (limit) => limit.held !== 'kernel' && (limit.name === 'memoryBytes' || limit.name === 'processes'),
  );
  const nestedWay = plan.config.network.mode === 'off' ? 'no network' : 'gateway';
  return [
    plan.host.engine?.name ?? 'native',
    ...(plan.host.engine?.far == null ? [] : [`on ${plan.host.engine.far}, seen from inside`, 'disk not limited']),
    ...(plan.image === null ? [] : [`image ${shortId(plan.image.id)}`]),
    ...(plan.config.runtime === null ? [] : [`runtime ${plan.config.runtime}`]),
    plan.workspace,
    ...(plan.keptHome === undefined ? [] : ['home kept: what one task leaves, the next one finds']),
    'namespaces',
    'seccomp',
    plan.network.spec.kind === 'gateway' ? 'gateway' : 'loopback only',
    ...(plan.signedIn === undefined || plan.signedIn.length === 0 ? [] : [`signed in: ${plan.signedIn.join(', ')}`]),
    ...(plan.config.docker.enabled ? [`docker inside: rootless, seccomp, ${nestedWay}`] : []),
    cgroupWord(plan.host.cgroupPlan.kind),
    ...ownModel(plan),
    ...soft.map(
      (limit) =>
        `${limit.name === 'memoryBytes' ? 'memory' : 'processes'} ${limit.held === 'watched' ? 'watched' : 'not limited'}`,
    ),
  ].join(' · ');
}

/** Where an agent's model is, if the user has named an endpoint. */
function ownModel({ config }: RunPlan): string[] {
  return config.secrets.flatMap(({ own, host, port }) =>
    own === undefined ? [] : [`model at ${own.tls && port === 443 ? host : hostAndPort(host, port)}`],
  );
}

function cgroupWord(kind: RunPlan['host']['cgroupPlan']['kind']): string {
  if (kind === 'none') return 'no cgroup';
  return kind === 'engine' ? 'cgroup of the engine' : `cgroup ${kind}`;
}
