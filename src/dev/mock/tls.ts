import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { md, pki } from 'node-forge';
import { listen } from '../../platform/server/listen';

/** The API hosts of the marketplace, which some programs can't be configured to replace. */
export const HOSTS = ['itch.io', 'api.itch.io'];
const CERTIFICATE_NAMES = [...HOSTS, '*.itch.io', 'localhost'];
const DNS_NAME = 2;
const IP_ADDRESS = 7;
const VALID_DAYS = 30;

interface Authority {
  /** Path of the authority's certificate. */
  file: string;
  cert: string;
  key: string;
}

/**
 * A certificate authority for this run, and a certificate that it signed. Programs must be configured to
 * trust it.
 */
export function createAuthority(folder: string): Authority {
  const authority = createKeys();
  const server = createKeys();
  const subject = [{ name: 'commonName', value: 'Gamewharf mock' }];
  const ca = certificate(authority.publicKey, subject, subject, [
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    { name: 'subjectKeyIdentifier' },
  ]);
  ca.sign(pki.privateKeyFromPem(authority.privateKey), forgeSha256());
  const leaf = certificate(server.publicKey, [{ name: 'commonName', value: 'localhost' }], subject, [
    { name: 'basicConstraints', cA: false },
    { name: 'keyUsage', digitalSignature: true, keyEncipherment: true },
    { name: 'extKeyUsage', serverAuth: true },
    {
      name: 'subjectAltName',
      altNames: [
        ...CERTIFICATE_NAMES.map((value) => ({ type: DNS_NAME, value })),
        { type: IP_ADDRESS, ip: '127.0.0.1' },
      ],
    },
  ]);
  leaf.sign(pki.privateKeyFromPem(authority.privateKey), forgeSha256());
  const file = join(folder, 'ca.pem');
  writeFileSync(file, pki.certificateToPem(ca));
  return { file, cert: pki.certificateToPem(leaf), key: server.privateKey };
}

/** Node's key generation takes a tenth of the time of node-forge's. */
const createKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });

function certificate(
  publicKey: string,
  subject: pki.CertificateField[],
  issuer: pki.CertificateField[],
  extensions: object[],
): pki.Certificate {
  const certificate = pki.createCertificate();
  certificate.publicKey = pki.publicKeyFromPem(
    createPublicKey(publicKey).export({ type: 'spki', format: 'pem' }) as string,
  );
  // Without the first byte 01, a set first bit would make the number negative.
  certificate.serialNumber = `01${randomBytes(15).toString('hex')}`;
  const day = 24 * 60 * 60 * 1000;
  // Clocks of other machines may differ.
  certificate.validity.notBefore = new Date(Date.now() - day);
  certificate.validity.notAfter = new Date(Date.now() + VALID_DAYS * day);
  certificate.setSubject(subject);
  certificate.setIssuer(issuer);
  certificate.setExtensions(extensions);
  return certificate;
}

const forgeSha256 = () => md.sha256.create();

/** Decrypts connections and forwards them to the service on this machine, once it listens. */
export class TlsFront {
  private constructor(
    private readonly server: Server,
    readonly port: number,
    /** The port of the service. */
    readonly forwardTo: (port: number) => void,
  ) {}

  static async listen(
    { cert, key }: Authority,
    at: { port: number; host: string },
    names: Parameters<typeof listen>[2],
  ): Promise<TlsFront> {
    let forwardTo!: (port: number) => void;
    const target = new Promise<number>((resolve) => (forwardTo = resolve));
    const server = createServer({ cert, key }, (client) => {
      client.on('error', () => client.destroy());
      void target.then((service) => connectSockets(client, connect(service, '127.0.0.1')));
    });
    await listen(server, at, names);
    return new TlsFront(server, (server.address() as AddressInfo).port, forwardTo);
  }

  close(): void {
    this.server.close();
  }
}

function connectSockets(client: Socket, service: Socket): void {
  client.on('close', () => service.destroy());
  service.on('error', () => client.destroy()).on('close', () => client.destroySoon());
  client.pipe(service).pipe(client);
}
