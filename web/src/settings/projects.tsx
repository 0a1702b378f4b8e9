// web/src/settings/projects.tsx: the list of projects.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { runAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useProjects } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { showToast, showFailure } from '../ui/toasts.tsx';
import { Section, Setting } from './section.tsx';

export function Projects(): ReactNode {
  const { data } = useProjects();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: async (project: string) => api.removeProject(project),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: keys.projects });
      showToast('Project removed from the list', { about: 'Its files are kept.' });
    },
    onError: (error) => showFailure(error),
  });
  return (
    <Section
      title="Projects"
      about="Removing a project from the list deletes no files. A project with tasks cannot be removed."
    >
      {data?.map((project) => (
        <Setting
          key={project.id}
          name={cleanLine(project.name)}
          about={
            <span className="font-mono text-sm wrap-anywhere">
              {cleanLine(project.path)}, {plural(project.tasks, 'task')}
            </span>
          }
        >
          <Button
            size="small"
            aria-label={`Remove from list: ${cleanLine(project.name)}`}
            onClick={() => remove.mutate(project.id)}
          >
            Remove from list
          </Button>
        </Setting>
      ))}
      <Button className="mt-3" onClick={() => runAction('add-project')}>
        Add project
      </Button>
    </Section>
  );
}
