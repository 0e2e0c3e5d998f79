import { sign } from 'aws4';

const env = process.env as Record<string, string>;
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

export function signedUrl(file_key: string, filename: string): string {
  const { origin, host } = new URL(env.FILES_S3_ENDPOINT!);
  const path = [env.FILES_S3_BUCKET!, ...file_key.split('/')].map(encoded).join('/');
  const disposition = encoded(`attachment; filename="${filename}"`);
  const signed = sign(
    {
      service: 's3',
      region: env.FILES_S3_REGION,
      host,
      path: `/${path}?X-Amz-Expires=300&response-content-disposition=${disposition}`,
      headers: { Host: host },
      signQuery: true,
    },
    { accessKeyId: env.FILES_S3_ACCESS_KEY_ID, secretAccessKey: env.FILES_S3_SECRET_ACCESS_KEY },
  );
  return origin + signed.path!;
}
