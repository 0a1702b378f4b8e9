// tasks/strength.ts: one line that says what isolation is in force. Never more than is.
import { limitsInForce } from '../sandbox/limits.ts';
import type { RunPlan } from './prepare.ts';

export function describeStrength(plan: RunPlan): string {
  const limits = limitsInForce(plan.config.limits, plan.host.limitHost);
  const soft = limits.filter(
    (limit) => limit.held !== 'kernel' && (limit.name === 'memoryBytes' || limit.name === 'processes'),
  );
  return [
    'native',
    plan.workspace,
    'namespaces',
    'seccomp',
    plan.network.spec.kind === 'gateway' ? 'gateway' : 'loopback only',
    plan.host.cgroupPlan.kind === 'none' ? 'no cgroup' : `cgroup ${plan.host.cgroupPlan.kind}`,
    ...soft.map(
      (limit) =>
        `${limit.name === 'memoryBytes' ? 'memory' : 'processes'} ${limit.held === 'watched' ? 'watched' : 'not limited'}`,
    ),
  ].join(' · ');
}
