// web/src/shell/add-project.tsx: adds a repository on this machine, or clones one.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/fields.tsx';
import { Failure } from '../ui/states.tsx';

export function AddProject({ open, onClose }: { open: boolean; onClose: () => void }): ReactNode {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Add project"
      about="The path of a git repository on this machine, or a URL to clone. Your own git clones it with your credentials, outside any sandbox."
    >
      <AddProjectForm onDone={onClose} />
    </Dialog>
  );
}

export function AddProjectForm({ onDone }: { onDone: () => void }): ReactNode {
  const [where, setWhere] = useState('');
  const navigate = useNavigate();
  const client = useQueryClient();
  const add = useMutation({
    mutationFn: async () => api.addProject(isUrl(where.trim()) ? { url: where.trim() } : { path: where.trim() }),
    onSuccess: async (project) => {
      await client.invalidateQueries({ queryKey: keys.projects });
      onDone();
      await navigate({ to: '/p/$project', params: { project: project.id }, search: {} });
    },
  });
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (where.trim() !== '') add.mutate();
      }}
    >
      <TextField
        label="Path or URL"
        value={where}
        onChange={setWhere}
        placeholder="/home/me/webshop or https://example.com/me/webshop.git"
        mono
        ready
      />
      {add.isError ? <Failure tight error={add.error} /> : null}
      <div className="flex justify-end gap-2">
        <Button type="submit" look="primary" disabled={where.trim() === '' || add.isPending}>
          {isUrl(where.trim()) ? 'Clone' : 'Add'}
        </Button>
      </div>
    </form>
  );
}

/** A URL with a scheme, or the ssh form git@host:path. */
function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) || /^[^/\s:]+@[^/\s:]+:/.test(text);
}
