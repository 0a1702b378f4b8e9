// web/src/task/services-panel.tsx: the services of a task with their state, URL and log.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import type { ApiServices } from '../../../src/protocol/api/services.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { clean, cleanLine } from '../text/clean.ts';
import { bytes } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { SectionTitle } from '../ui/figures.tsx';

type Service = ApiServices['services'][number];

export function ServicesPanel({ task }: { task: ApiTaskDetail }): ReactNode {
  // The key starts with the task's key, so that events that refresh the task refresh this too.
  const { data } = useQuery({
    queryKey: [...keys.task(task.id), 'services'],
    queryFn: async () => api.services(task.id),
  });
  const services = data?.services ?? [];
  if (services.length === 0) return null;
  return (
    <section aria-label="Services">
      <div className="mb-2">
        <SectionTitle count={services.length}>Services</SectionTitle>
      </div>
      <ul className="flex flex-col gap-3 text-sm">
        {services.map((service) => (
          <ServiceRow key={service.name} task={task} service={service} />
        ))}
      </ul>
    </section>
  );
}

const SIGNS = {
  starting: { sign: '◌', colour: 'text-warn' },
  healthy: { sign: '●', colour: 'text-ok' },
  failed: { sign: '✕', colour: 'text-bad' },
  stopped: { sign: '○', colour: 'text-muted' },
} as const;

function ServiceRow({ task, service }: { task: ApiTaskDetail; service: Service }): ReactNode {
  const [open, setOpen] = useState(false);
  const { sign, colour } = SIGNS[service.state];
  const name = cleanLine(service.name);
  return (
    <li data-service={name}>
      <div className="flex min-h-6 items-center gap-2">
        <span aria-hidden className={colour}>
          {sign}
        </span>
        <span className="font-medium">{name}</span>
        <span className="text-muted">{cleanLine(service.kind)}</span>
        <span className={colour}>{service.state}</span>
        <Button size="small" className="ml-auto" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide' : 'Show'} log<span className="unseen"> of {name}</span>
        </Button>
      </div>
      {service.state === 'stopped' ? null : (
        <div className="mt-1 flex items-center gap-2 text-muted">
          <Copyable text={cleanLine(service.url, 300)} />
          {service.dataBytes === 0 ? null : (
            <span className="tabular ml-auto shrink-0" title="Size of its data">
              {bytes(service.dataBytes)}
            </span>
          )}
        </div>
      )}
      {service.why === null ? null : <p className="text-bad">{cleanLine(service.why, 600)}</p>}
      {service.why === null || open ? null : (
        <Lines text={service.lines.slice(-8).join('\n')} label={`End of the log of ${name}`} />
      )}
      {open ? <ServiceLog task={task} name={service.name} /> : null}
    </li>
  );
}

const POLL_MS = 2000;

function ServiceLog({ task, name }: { task: ApiTaskDetail; name: string }): ReactNode {
  const { data } = useQuery({
    queryKey: [...keys.task(task.id), 'services', name],
    queryFn: async () => api.serviceLog(task.id, name),
    refetchInterval: task.live ? POLL_MS : false,
  });
  if (data === undefined) return null;
  return <Lines text={data.text === '' ? 'No output yet.' : data.text} label={`Log of ${cleanLine(name)}`} />;
}

function Lines({ text, label }: { text: string; label: string }): ReactNode {
  if (text === '') return null;
  return (
    <pre
      tabIndex={0}
      role="group"
      aria-label={label}
      className="mt-1 max-h-60 overflow-auto rounded-md bg-panel p-2 font-mono text-xs whitespace-pre-wrap wrap-anywhere"
    >
      {clean(text)}
    </pre>
  );
}
